package opstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Salvaged says what Salvage copied.
type Salvaged struct {
	Records uint64 `json:"records"` // the last one's seq, too
	Bytes   int64  `json:"bytes"`   // of lines, with newlines
	Blobs   int    `json:"blobs"`
	// Why is what ended the readable prefix; empty when everything was read.
	Why string `json:"why,omitempty"`
	// BehindRecords is how many lines behind the damage can be read and were not
	// copied, since what stood before them is not known; Behind is where the
	// first MaxStretches runs of them are.
	BehindRecords uint64    `json:"behind_records,omitempty"`
	Behind        []Stretch `json:"behind,omitempty"`
}

// Stretch is a run of lines that follow one another.
type Stretch struct {
	File   string `json:"file"` // where the first one is
	Offset int64  `json:"offset"`
	First  uint64 `json:"first"` // seq
	Last   uint64 `json:"last"`  // seq
}

// MaxStretches is how many runs of readable lines Salvaged lists.
const MaxStretches = 16

// partSuffix ends the name of a copy that is not finished.
const partSuffix = ".part"

// errSalvageEnds ends a scan at a line whose blob cannot be read.
var errSalvageEnds = errors.New("the readable prefix ends")

// Salvage copies the records of the stream in dir that can be read, from the
// first up to the first damage, into a new stream in the directory to, which
// must not exist and not lie in dir. Lines are copied as they are, so that
// their hashes stay; a record whose blob is damaged ends the prefix, too, and so
// do bytes that cannot be read. The old stream is only read.
//
// The copy is made under the name to + ".part" and durable when it gets its own:
// a directory of the name to is whole, whatever ends Salvage. What an interrupted
// one left means nothing and is not touched by the next, which is refused.
func Salvage(ctx context.Context, dir, to string) (Salvaged, error) {
	return salvage(ctx, osFS{}, dir, filepath.Clean(to))
}

func salvage(ctx context.Context, fsys FS, dir, to string) (Salvaged, error) {
	if err := newPlace(dir, to); err != nil {
		return Salvaged{}, err
	}
	if _, _, err := listSegments(fsys, dir); err != nil {
		return Salvaged{}, notFound(dir, err)
	}
	var out Salvaged
	blobs := map[string]blobRef{}
	seen := 0
	scan := scanner{fs: fsys, dir: dir, visit: func(e *envelope, _ int64, size int) error {
		if seen++; seen%verifyCtxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		ref, isBlob, err := parseBlobRef(e.body)
		if isBlob && err == nil && blobs[ref.Blob.SHA256] == (blobRef{}) {
			if _, err = resolveBody(fsys, dir, e.seq, e.body); err == nil {
				blobs[ref.Blob.SHA256] = ref
			}
		}
		if err != nil {
			out.Why = err.Error()
			return errSalvageEnds
		}
		out.Bytes += int64(size) + 1
		return nil
	}}
	stop, err := scan.advance()
	switch {
	case err == nil, errors.Is(err, errSalvageEnds):
	case unreadable(err):
		out.Why = err.Error()
	default:
		return Salvaged{}, fmt.Errorf("salvage %s: %w", dir, err)
	}
	if stop != nil {
		out.Why = fmt.Sprintf("%s at byte %d (seq %d): %s", segmentPath(dir, stop.seg), stop.off, stop.seq, stop.why)
	}
	out.Records, out.Blobs = scan.cur.seq, len(blobs)
	if out.Why != "" {
		if err := out.lookBehind(ctx, fsys, dir, scan.cur); err != nil {
			return Salvaged{}, fmt.Errorf("salvage %s: %w", dir, err)
		}
	}
	part := to + partSuffix
	err = copyPrefix(fsys, dir, part, &scan.cur, blobs)
	if err == nil {
		err = fsys.Rename(part, to)
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(to))
	}
	if err != nil {
		return Salvaged{}, fmt.Errorf("salvage %s to %s: %w", dir, to, err)
	}
	return out, nil
}

// lookBehind finds the lines that can be read behind the damage a cursor stands
// before. Bytes that cannot be read end the search.
func (out *Salvaged) lookBehind(ctx context.Context, fsys FS, dir string, cur cursor) error {
	v := verifier{fs: fsys, dir: dir, scan: scanner{fs: fsys, dir: dir}}
	v.scan.visit = func(*envelope, int64, int) error {
		if out.BehindRecords++; out.BehindRecords%verifyCtxEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		return nil
	}
	at := &stop{seg: max(cur.seg(), 1), off: cur.off, seq: cur.seq + 1}
	for at != nil {
		more, err := v.resync(at)
		if err != nil || !more {
			return readableOnly(err)
		}
		s := Stretch{File: segmentPath(dir, v.scan.cur.seg()), Offset: v.scan.cur.off, First: v.scan.cur.seq + 1}
		at, err = v.scan.advance()
		if s.Last = v.scan.cur.seq; s.Last >= s.First && len(out.Behind) < MaxStretches {
			out.Behind = append(out.Behind, s)
		}
		if err != nil {
			return readableOnly(err)
		}
	}
	return nil
}

// readableOnly returns an error unless it says that bytes cannot be read.
func readableOnly(err error) error {
	if unreadable(err) {
		return nil
	}
	return err
}

// newPlace checks where a copy is to go.
func newPlace(dir, to string) error {
	from, err := realPath(dir)
	if err != nil {
		return notFound(dir, err)
	}
	parent, err := realPath(filepath.Dir(to))
	if err != nil {
		return fmt.Errorf("salvage to %s: %w: %w", to, ErrInvalid, err)
	}
	if parent == from || strings.HasPrefix(parent, from+string(filepath.Separator)) {
		return fmt.Errorf("salvage to %s: %w: it lies in the stream that is to be salvaged", to, ErrInvalid)
	}
	if _, err := os.Lstat(to); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("salvage to %s: %w: it exists; name a new directory", to, ErrInvalid)
	}
	if _, err := os.Lstat(to + partSuffix); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("salvage to %s: %w: %s exists, perhaps of a salvage that was interrupted; remove it, or name another directory",
			to, ErrInvalid, to+partSuffix)
	}
	return nil
}

// realPath is the absolute path of an existing directory, without symbolic
// links.
func realPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// copyPrefix copies the lines up to a cursor and the blobs they name, durably.
func copyPrefix(fsys FS, dir, to string, cur *cursor, blobs map[string]blobRef) error {
	ops := filepath.Join(to, opsDirName)
	for _, d := range [][2]string{{to, filepath.Dir(to)}, {ops, to}} {
		if err := mkdirDurable(fsys, d[0], d[1]); err != nil {
			return err
		}
	}
	store := blobStore{fs: fsys, dir: to}
	for sum, ref := range blobs {
		data, err := readBlob(fsys, blobPath(dir, sum), ref.Blob.Bytes)
		if err == nil {
			_, err = store.put(data, ref.Blob.MIME)
		}
		if err != nil {
			return err
		}
	}
	for i, seg := range cur.segs {
		size := cur.off
		if i < len(cur.segs)-1 {
			var err error
			if size, err = fileSize(fsys, segmentPath(dir, seg)); err != nil {
				return err
			}
		} else if size == 0 { // nothing of it could be read
			break
		}
		if err := copyFile(fsys, segmentPath(dir, seg), segmentPath(to, seg), size); err != nil {
			return err
		}
	}
	return fsys.SyncDir(ops)
}

// copyFile copies the first bytes of a file, durably.
func copyFile(fsys FS, from, to string, size int64) error {
	f, err := fsys.Open(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); int64(n) < size {
		return fmt.Errorf("read %s: %w", from, err)
	}
	return writeFileDurable(fsys, to+".tmp", to, data)
}
