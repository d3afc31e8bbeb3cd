package opstream

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

const (
	// MaxFoldBytes is the largest fold a checkpoint holds.
	MaxFoldBytes = 64 << 20
	// MaxFoldVersionBytes is the longest version of a fold.
	MaxFoldVersionBytes = 256

	checkpointName = "checkpoint.bin"
)

// checkpoint is a verified position in a stream, what is known of every line
// up to it, and what its caller made of those lines. It is derived: whatever
// it says that the stream does not is not believed.
type checkpoint struct {
	version string
	fold    []byte
	cur     cursor
	idx     index
	ends    []int64 // for each of cur.segs, where its lines up to cur.seq end
}

// Checkpoint keeps fold, what the caller made of the records up to seq, in a
// file beside the stream, together with the index of those records. An Open
// with the same version in Options.Checkpoint then reads only what was
// written after seq. Version names the code that makes the fold, and changes
// with it: 1 to MaxFoldVersionBytes bytes. Seq is that of a durable record.
//
// The file replaces the one before it, is as private as the stream, and may be
// deleted at any time. Writing it costs time and bytes in proportion to the
// length of the stream (about 6 bytes a record) and to the fold, so it is for
// closing, and for when a stream has grown by a good part. A failure leaves the
// file before it, or one that is seen to be damaged, and does not concern the
// stream.
//
// The file is synced and then renamed into place. The directory is not
// synced: a power cut leaves the old one or the new one, and both are true.
func (l *Log) Checkpoint(version string, fold []byte, seq uint64) error {
	if err := l.checkpoint(version, fold, seq); err != nil {
		return fmt.Errorf("checkpoint %s at record %d: %w", l.dir, seq, err)
	}
	return nil
}

func (l *Log) checkpoint(version string, fold []byte, seq uint64) error {
	switch {
	case version == "" || len(version) > MaxFoldVersionBytes:
		return fmt.Errorf("%w: the fold's version %.80q has %d bytes: want 1 to %d", ErrInvalid, version, len(version), MaxFoldVersionBytes)
	case len(fold) > MaxFoldBytes:
		return fmt.Errorf("%w: the fold has %d bytes, the limit is %d", ErrTooLarge, len(fold), MaxFoldBytes)
	}
	l.checkpointMu.Lock()
	defer l.checkpointMu.Unlock()
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	last := l.scan.cur
	if seq == 0 || seq > last.seq {
		l.mu.Unlock()
		return ErrNoRecord
	}
	// What the index says of a line never changes once the line is durable.
	c := checkpoint{version: version, fold: fold, idx: l.scan.idx.snapshot(seq)}
	refs, _ := refsAfter(&l.scan, seq-1, min(seq+1, last.seq))
	l.mu.Unlock()
	c.cur = cursor{seq: seq, hash: last.hash}
	for _, first := range last.segs {
		if first <= seq {
			c.cur.segs = append(c.cur.segs, first)
		}
	}
	if seq < last.seq {
		// The next line's prev and this line read again have to agree: the
		// checkpoint vouches for neither alone.
		if err := l.hashChained(refs, &c.cur.hash); err != nil {
			return err
		}
	}
	data, err := encodeCheckpoint(&c)
	if err != nil {
		return err
	}
	path := filepath.Join(l.dir, checkpointName)
	return writeFileDurable(l.opts.FS, path+".tmp", path, data)
}

// hashChained returns the hash of the first of consecutive lines, which it reads
// and checks against each other.
func (l *Log) hashChained(refs []lineRef, hash *lineHash) error {
	files := segmentReader{fs: l.opts.FS, dir: l.dir, chained: refs[len(refs)-1].seq}
	defer files.close()
	for i, ref := range refs {
		line, _, err := files.read(ref)
		if err != nil {
			return err
		}
		if i == 0 {
			*hash = hashLine(line)
		}
	}
	return nil
}

// Folded returns the fold of the checkpoint that Open used and the seq of the
// last record in it; false when Open used none. The fold is shared: it must
// not be changed.
func (l *Log) Folded() (fold []byte, seq uint64, ok bool) { return l.resumed.folded() }

// CheckpointRefused says why Open did not use the checkpoint it was asked to
// use and verified the whole stream instead; nil when it used it, was not
// asked to, or there was none.
func (l *Log) CheckpointRefused() error { return l.resumed.refused }

// Folded is as Log's; what was written after seq may be read by Since.
func (r *Reader) Folded() (fold []byte, seq uint64, ok bool) { return r.resumed.folded() }

// CheckpointRefused is as Log's.
func (r *Reader) CheckpointRefused() error { return r.resumed.refused }

// ErrFoldVersion is in what CheckpointRefused gives for a checkpoint of another
// version of the fold, as after a change of program.
var ErrFoldVersion = errors.New("the fold is of another version")

// resumed is what became of a checkpoint at an opening.
type resumed struct {
	fold    []byte
	seq     uint64
	refused error
}

func (r *resumed) folded() ([]byte, uint64, bool) { return r.fold, r.seq, r.seq > 0 }

// resume puts a scanner that has read nothing behind the checkpoint's last
// line, when there is a checkpoint of that version and it is this stream's.
func (s *scanner) resume(version string) resumed {
	if version == "" {
		return resumed{}
	}
	c, err := readCheckpoint(s.fs, s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return resumed{}
	}
	if err == nil && c.version != version {
		err = fmt.Errorf("%w: it is %q, not %q", ErrFoldVersion, c.version, version)
	}
	if err == nil {
		err = c.fit(s.fs, s.dir)
	}
	if err != nil {
		return resumed{refused: fmt.Errorf("checkpoint of %s not used: %w", s.dir, err)}
	}
	s.cur, s.idx = c.cur, c.idx
	return resumed{fold: c.fold, seq: c.cur.seq}
}

// fit checks that a checkpoint is one of the stream in dir: its segments are
// there, those that are finished with their size, and its last line with its
// hash. It completes the cursor.
//
// The lines that stand behind the last line's ack are verified, too. So what a
// scan of the whole stream would call a torn tail is never behind a
// checkpoint, and recovery decides as it does without one.
func (c *checkpoint) fit(fsys FS, dir string) error {
	segs, _, err := listSegments(fsys, dir)
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearch(segs, c.cur.seq+1)
	if !slices.Equal(segs[:at], c.cur.segs) {
		return errors.New("the stream has other segments")
	}
	for i, seg := range segs[:at] {
		size, err := fileSize(fsys, segmentPath(dir, seg))
		if err != nil {
			return err
		}
		if size < c.ends[i] || (size > c.ends[i] && i < at-1) {
			return fmt.Errorf("segment %s has %d bytes, not %d", segmentName(seg), size, c.ends[i])
		}
	}
	files := segmentReader{fs: fsys, dir: dir, chained: c.cur.seq}
	defer files.close()
	s := scanner{cur: c.cur, idx: c.idx}
	line, e, err := files.read(s.ref(c.cur.seq))
	if err != nil {
		return err
	}
	if hashLine(line) != c.cur.hash {
		return fmt.Errorf("record %d has another hash", c.cur.seq)
	}
	c.cur.kind, c.cur.step = string(e.kind), e.step
	c.cur.ack = c.cur.seq // a checkpoint names a durable line
	for seq := max(e.ack+1, c.cur.seg()); seq < c.cur.seq; seq++ {
		if _, _, err := files.read(s.ref(seq)); err != nil {
			return err
		}
	}
	_, _, err = files.read(s.ref(c.cur.seq)) // chained to the one before
	return err
}

// lookAtCheckpoint says what is wrong with the checkpoint: it is not this
// stream's, or not what the verified lines say. One that stands for more lines
// than there are tells of a lost end.
func (v *verifier) lookAtCheckpoint() {
	c, err := v.checkpoint, v.checkpointErr
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	path, last := filepath.Join(v.dir, checkpointName), v.report.LastSeq
	whole := !v.report.Has(SeverityCorrupt)
	if err == nil && whole && last > 0 && c.cur.seq > last && c.idx.differs(&v.scan.idx) == nil {
		severity := SeverityCorrupt
		if v.report.Has(SeverityTorn) { // the lines are there, but damaged
			severity = SeverityNotice
		}
		v.report.add(Finding{Severity: severity, File: path, Seq: last, Why: fmt.Sprintf(
			"it stands for operations up to seq %d, which were durable, and the stream ends with %d: its end was lost, or this is an older copy of it", c.cur.seq, last)})
		return
	}
	if err == nil {
		err = c.fit(v.fs, v.dir)
	}
	if err == nil && whole {
		err = c.idx.differs(&v.scan.idx)
	}
	if err != nil {
		v.note(path, fmt.Sprintf("%v; it is derived and can be deleted", err))
	}
}
