package segments

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

const (
	// MaxFoldVersionBytes is the longest version of a fold.
	MaxFoldVersionBytes = 256

	SnapshotName = "checkpoint.bin"
)

// Snapshot is a verified position in a stream, the index of every line up to it, and what
// its caller derived from those lines. The stream decides wherever the two disagree.
type Snapshot struct {
	Version string
	Fold    []byte
	Cur     Cursor
	Idx     wire.Index
	ends    []int64 // for each of cur.segs, where its lines up to cur.seq end
}

// ErrFoldVersion is part of SnapshotRefused's error for a snapshot of another version of
// the fold, as after a change of the program.
var ErrFoldVersion = errors.New("the fold is of another version")

// Resumed is the result of an attempt to use a snapshot.
type Resumed struct {
	fold    []byte
	Seq     uint64
	Refused error
}

func (r *Resumed) Folded() ([]byte, uint64, bool) { return r.fold, r.Seq, r.Seq > 0 }

// Resume moves a scanner that has read nothing behind the snapshot's last line, if the
// snapshot has that version and belongs to this stream.
func (s *Scanner) Resume(version string) Resumed {
	if version == "" {
		return Resumed{}
	}
	c, err := ReadSnapshot(s.FS, s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return Resumed{}
	}
	if err == nil && c.Version != version {
		err = fmt.Errorf("%w: it is %q, not %q", ErrFoldVersion, c.Version, version)
	}
	if err == nil {
		err = c.Fit(s.FS, s.Dir)
	}
	if err != nil {
		return Resumed{Refused: fmt.Errorf("snapshot of the index in %s not used: %w", s.Dir, err)}
	}
	s.Cur, s.Idx = c.Cur, c.Idx
	return Resumed{fold: c.Fold, Seq: c.Cur.Seq}
}

// Fit checks that a snapshot belongs to the stream in dir: its segments exist, the finished
// ones with their size, and its last line has its hash. It completes the cursor.
//
// The lines after the last line's ack are verified, too. So a torn tail is never before a
// snapshot, and recovery decides as it does without one.
func (c *Snapshot) Fit(fsys durable.FS, dir string) error {
	segs, _, err := List(fsys, dir)
	if err != nil {
		return err
	}
	at, _ := slices.BinarySearch(segs, c.Cur.Seq+1)
	if !slices.Equal(segs[:at], c.Cur.Segs) {
		return errors.New("the stream has other segments")
	}
	for i, seg := range segs[:at] {
		size, err := FileSize(fsys, Path(dir, seg))
		if err != nil {
			return err
		}
		if size < c.ends[i] || (size > c.ends[i] && i < at-1) {
			return fmt.Errorf("segment %s has %d bytes, not %d", Name(seg), size, c.ends[i])
		}
	}
	files := Reader{FS: fsys, Dir: dir, Chained: c.Cur.Seq}
	defer files.Close()
	s := Scanner{Cur: c.Cur, Idx: c.Idx}
	line, e, err := files.Read(s.Ref(c.Cur.Seq))
	if err != nil {
		return err
	}
	if wire.HashOf(line) != c.Cur.Hash {
		return fmt.Errorf("record %d has another hash", c.Cur.Seq)
	}
	c.Cur.Kind, c.Cur.Step = string(e.Kind), e.Step
	c.Cur.Ack = c.Cur.Seq // a snapshot names a durable line
	for seq := max(e.Ack+1, c.Cur.Seg()); seq < c.Cur.Seq; seq++ {
		if _, _, err := files.Read(s.Ref(seq)); err != nil {
			return err
		}
	}
	_, _, err = files.Read(s.Ref(c.Cur.Seq)) // chained to the one before
	return err
}
