package opstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
)

const (
	tornPrefix = "torn-"
	tornSuffix = ".bin"
	// tornHashBytes is how much of the torn bytes' SHA-256 is in their file's name.
	tornHashBytes = 4
)

// recover verifies the stream and repairs its end by the rules of the package's documentation.
// Every step may be repeated: after a crash, the next recovery ends the same.
func (l *Log) recover() error {
	st, err := l.scan.Advance()
	if err != nil {
		return err
	}
	if st != nil {
		vouched, err := l.scan.Vouched(st)
		if err != nil {
			return err
		}
		if vouched >= st.Seq {
			return l.scan.Corrupt(st, vouched)
		}
	}
	if l.scan.Cur.Seg() == 0 {
		return nil
	}
	if err := l.openSegment(l.scan.Cur.Seg(), 0); err != nil {
		return err
	}
	if st != nil {
		if err := l.setAside(st); err != nil {
			return err
		}
	}
	rewritten, err := l.rewriteUnacknowledged()
	if err != nil {
		return err
	}
	l.scan.Cur.Ack = l.scan.Cur.Seq
	return l.noteTorn(rewritten)
}

// setAside copies the torn bytes to a file of their own, makes that durable, and cuts them
// off. They are at most a batch after a crash, and at most a segment otherwise, so they are
// read in one piece.
func (l *Log) setAside(st *segments.Stop) error {
	size, err := l.file.Size()
	if err != nil {
		return fmt.Errorf("size of segment %s: %w", segments.Name(st.Seg), err)
	}
	data := make([]byte, size-st.Off)
	if _, err := l.file.ReadAt(data, st.Off); err != nil {
		return fmt.Errorf("read torn tail of %s: %w", segments.Name(st.Seg), err)
	}
	name := tornName(st.Seg, st.Off, data)
	path := filepath.Join(l.dir, name)
	if err := durable.WriteVia(l.opts.FS, path+".tmp", path, data); err != nil {
		return fmt.Errorf("set torn tail aside: %w", err)
	}
	if err := l.opts.FS.SyncDir(l.dir); err != nil {
		return fmt.Errorf("set torn tail aside: sync directory: %w", err)
	}
	// rewriteUnacknowledged syncs the segment next, and with it the cut.
	if err := l.file.Truncate(st.Off); err != nil {
		return fmt.Errorf("cut torn tail of %s: %w", segments.Name(st.Seg), err)
	}
	return nil
}

// rewriteUnacknowledged writes the good lines that nothing vouches for again, with the same
// bytes, and syncs the segment: after a failed sync, the kernel may hold clean pages that are
// not on the disk. It returns their number. They are all in the last segment, whose existence
// vouches for every earlier line.
func (l *Log) rewriteUnacknowledged() (int, error) {
	cur := &l.scan.Cur
	first := max(cur.Ack+1, cur.Seg())
	n := 0
	if first <= cur.Seq {
		n = int(cur.Seq - first + 1)
		off := l.scan.Idx.At(first).Off
		data := make([]byte, cur.Off-off)
		if _, err := l.file.ReadAt(data, off); err != nil {
			return 0, fmt.Errorf("read unacknowledged lines of %s: %w", segments.Name(cur.Seg()), err)
		}
		if _, err := l.file.WriteAt(data, off); err != nil {
			return 0, fmt.Errorf("rewrite unacknowledged lines of %s: %w", segments.Name(cur.Seg()), err)
		}
	}
	if err := l.file.Sync(); err != nil {
		return 0, fmt.Errorf("sync %s: %w", segments.Name(cur.Seg()), err)
	}
	if err := l.opts.FS.SyncDir(filepath.Join(l.dir, segments.OpsDirName)); err != nil {
		return 0, fmt.Errorf("sync directory %s: %w", segments.OpsDirName, err)
	}
	return n, nil
}

// noteTorn appends log.recovered for each torn file that no such line names
// yet: this recovery's, and that of one that crashed before its note.
func (l *Log) noteTorn(rewritten int) error {
	names, err := l.opts.FS.ReadDir(l.dir)
	if err != nil {
		return fmt.Errorf("list %s: %w", l.dir, err)
	}
	slices.Sort(names)
	for _, name := range names {
		r, ok := parseTornName(name)
		if !ok {
			continue
		}
		noted, err := l.isNoted(&r)
		if err != nil {
			return err
		}
		if noted {
			continue
		}
		r.Rewritten = rewritten
		if r.Bytes, err = segments.FileSize(l.opts.FS, filepath.Join(l.dir, r.SavedAs)); err != nil {
			return fmt.Errorf("size of %s: %w", r.SavedAs, err)
		}
		body, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("note recovery: %w", err)
		}
		recovered := item{kind: []byte(kindRecovered), step: l.scan.Cur.Step, body: body}
		if _, err := l.submit(context.Background(), []item{recovered}); err != nil {
			return fmt.Errorf("note recovery: %w", err)
		}
		l.recovered = &r
	}
	return nil
}

// isNoted reports whether a log.recovered line names a torn file. Such lines are the first that a
// writer appends, so that this one follows the place of the torn bytes.
func (l *Log) isNoted(torn *Recovery) (bool, error) {
	seg, _ := segments.ParseName(filepath.Base(torn.File))
	last := l.scan.Idx.Last()
	first := 1 + sort.Search(int(last), func(i int) bool { return !l.scan.Ref(uint64(i)+1).Precedes(seg, torn.Offset) })
	files := segments.Reader{FS: l.opts.FS, Dir: l.dir}
	defer files.Close()
	for seq := uint64(first); seq <= last; seq++ {
		rec, err := recordAt(&files, l.scan.Ref(seq), last)
		if err != nil {
			return false, err
		}
		var r Recovery
		if rec.Kind != kindRecovered || json.Unmarshal(rec.Body, &r) != nil {
			break
		}
		if r.SavedAs == torn.SavedAs {
			return true, nil
		}
	}
	return false, nil
}

// tornName names the file of a torn tail by its place and bytes, so that setting the same tail
// aside twice writes the same file.
func tornName(seg uint64, off int64, data []byte) string {
	sum := sha256.Sum256(data)
	return fmt.Sprintf("%s%0*d-%d-%s%s", tornPrefix, segments.Digits, seg, off,
		hex.EncodeToString(sum[:tornHashBytes]), tornSuffix)
}

// parseTornName is tornName's inverse.
func parseTornName(name string) (Recovery, bool) {
	inner, begins := strings.CutPrefix(name, tornPrefix)
	inner, ends := strings.CutSuffix(inner, tornSuffix)
	parts := strings.Split(inner, "-")
	if !begins || !ends || len(parts) != 3 {
		return Recovery{}, false
	}
	seg, ok := segments.ParseName(parts[0] + segments.Suffix)
	off, err := strconv.ParseInt(parts[1], 10, 64)
	if !ok || err != nil {
		return Recovery{}, false
	}
	return Recovery{File: segments.Name(seg), Offset: off, SavedAs: name}, true
}
