package segments

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

// Cursor is a verified position: every line before it has the right form, checksum, sequence
// number and prev.
type Cursor struct {
	Segs []uint64  // the segments up to here, by first seq
	Off  int64     // in the last of segs, just past the last verified line
	Seq  uint64    // of the last verified line
	Hash wire.Hash // of the last verified line
	Ack  uint64    // the highest seq something verified vouches for
	Kind string    // of the last verified line
	Step int       // of the last verified line
}

// Seg is the cursor's segment; 0 before the first.
func (c *Cursor) Seg() uint64 {
	if len(c.Segs) == 0 {
		return 0
	}
	return c.Segs[len(c.Segs)-1]
}

// Stop is why a scan ended before the end of the bytes.
type Stop struct {
	Seg uint64
	Off int64
	Seq uint64 // the line that was expected
	Why string
}

// Scanner verifies a stream from its cursor on and indexes what it verified.
// It is not safe for concurrent use; its owner locks.
type Scanner struct {
	FS  durable.FS
	Dir string
	Cur Cursor
	Idx wire.Index
	// Visit, when set, is called with every verified line, its offset and its size without the
	// newline.
	Visit func(e *wire.Envelope, off int64, size int) error
}

// Advance verifies lines up to the end of the bytes, across segments. It
// returns nil there, and otherwise the stop. The error is the file system's,
// or ErrVersion.
//
// The directory is listed when the segments of the last listing are used up,
// and not for each of them: a listing costs as much as there are segments.
func (s *Scanner) Advance() (*Stop, error) {
	var ahead []uint64 // listed and not yet entered
	for {
		if s.Cur.Seg() != 0 {
			if st, err := s.advanceSegment(); st != nil || err != nil {
				return st, err
			}
		}
		if len(ahead) == 0 {
			segs, _, err := List(s.FS, s.Dir)
			if err != nil {
				return nil, fmt.Errorf("list segments of %s: %w", s.Dir, err)
			}
			at, entered := slices.BinarySearch(segs, s.Cur.Seg())
			if entered {
				at++
			}
			if ahead = segs[at:]; len(ahead) == 0 {
				return nil, nil
			}
		}
		next := ahead[0]
		ahead = ahead[1:]
		if next != s.Cur.Seq+1 {
			return &Stop{
				Seg: max(s.Cur.Seg(), 1), Off: s.Cur.Off, Seq: s.Cur.Seq + 1,
				Why: fmt.Sprintf("the lines before %s are missing", Name(next)),
			}, nil
		}
		s.Cur.Segs = append(s.Cur.Segs, next)
		s.Cur.Off = 0
		// A segment is made only after everything before it is durable.
		s.Cur.Ack = max(s.Cur.Ack, next-1)
	}
}

// advanceSegment verifies the rest of the cursor's segment.
func (s *Scanner) advanceSegment() (*Stop, error) {
	seg := s.Cur.Seg()
	f, err := s.FS.Open(Path(s.Dir, seg), os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("size of segment %s: %w", Name(seg), err)
	}
	if size == s.Cur.Off {
		return nil, nil
	}
	at := func(why string) *Stop {
		return &Stop{Seg: seg, Off: s.Cur.Off, Seq: s.Cur.Seq + 1, Why: why}
	}
	if size < s.Cur.Off {
		return at("the segment ends early"), nil
	}
	lines := newLineReader(f, s.Cur.Off, size)
	var e wire.Envelope
	for {
		line, _, state, err := lines.Next()
		if err != nil {
			return nil, fmt.Errorf("read segment %s: %w", Name(seg), err)
		}
		switch state {
		case lineEnd:
			return nil, nil
		case linePartial:
			return at("the line has no end"), nil
		case lineLong:
			return at(fmt.Sprintf("the line is longer than %d bytes", wire.MaxLineBytes)), nil
		}
		if err := wire.ParseLine(line, &e); err != nil {
			if errors.Is(err, wire.ErrVersion) { // not damage: nothing may be cut off
				return nil, fmt.Errorf("read %s at byte %d: %w; a newer program wrote it", Name(seg), s.Cur.Off, err)
			}
			return at(err.Error()), nil
		}
		if why := s.Cur.misfit(&e); why != "" {
			return at(why), nil
		}
		if s.Visit != nil {
			if err := s.Visit(&e, s.Cur.Off, len(line)); err != nil {
				return nil, err
			}
		}
		s.Accept(len(line), wire.HashOf(line), &e)
	}
}

// misfit returns why a line does not follow the cursor; empty if it does.
func (c *Cursor) misfit(e *wire.Envelope) string {
	switch {
	case e.Seq != c.Seq+1:
		return fmt.Sprintf("seq is %d, expected %d", e.Seq, c.Seq+1)
	case e.Prev != c.Hash:
		return wire.ErrChain.Error()
	}
	return ""
}

// Accept moves the cursor past a verified line, its size without the newline,
// and indexes it.
func (s *Scanner) Accept(size int, hash wire.Hash, e *wire.Envelope) {
	s.Idx.Add(wire.Entry{Off: s.Cur.Off, Size: uint32(size)})
	s.Cur.Off += int64(size) + 1
	s.Cur.Seq = e.Seq
	s.Cur.Hash = hash
	s.Cur.Ack = max(s.Cur.Ack, e.Ack)
	s.Cur.Step = e.Step
	// The comparison allocates nothing: a string is made only for a line whose kind differs from the one before.
	if s.Cur.Kind != string(e.Kind) {
		s.Cur.Kind = string(e.Kind)
	}
}

// Vouched returns the highest seq that anything behind a stop vouches for: the acks of whole
// lines with a right checksum, and the existence of later segments. A stop at or below it is
// corruption, any other a torn tail.
//
// A good line after a bad one proves nothing by itself: the sectors of one write reach the
// disk in any order.
func (s *Scanner) Vouched(st *Stop) (uint64, error) {
	segs, _, err := List(s.FS, s.Dir)
	if err != nil {
		return 0, fmt.Errorf("list segments of %s: %w", s.Dir, err)
	}
	var ack uint64
	for _, first := range segs {
		if first > st.Seg {
			ack = max(ack, first-1)
		}
	}
	if ack >= st.Seq || s.Cur.Seg() == 0 { // it is corruption already, or there is no first segment to read
		return ack, nil
	}
	f, err := s.FS.Open(Path(s.Dir, st.Seg), os.O_RDONLY)
	if err != nil {
		return 0, fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	lines := newLineReader(f, st.Off, st.Off)
	for {
		line, off, state, err := lines.Next()
		if err != nil {
			return 0, fmt.Errorf("read segment %s: %w", Name(st.Seg), err)
		}
		switch state {
		case lineEnd, linePartial:
			return ack, nil
		case lineLong:
			// Two lines that lost the newline between them may exceed the limit of one.
			if line, err = lineEndBytes(f, off, lines.off-1); err != nil {
				return 0, fmt.Errorf("read segment %s: %w", Name(st.Seg), err)
			}
		}
		ack = max(ack, ackWithin(line))
	}
}

// lineEndBytes returns the last bytes between from and to, as many
// as the longest line has.
func lineEndBytes(f durable.File, from, to int64) ([]byte, error) {
	from = max(from, to-wire.MaxLineBytes)
	data := make([]byte, to-from)
	n, err := f.ReadAt(data, from)
	if errors.Is(err, io.EOF) {
		err = nil // withdrawn meanwhile by a live writer
	}
	return data[:n], err
}

// ackWithin returns the ack of a line, or of the good line at the end of one: where a newline
// was damaged, the line behind it still vouches. It returns 0 for none.
func ackWithin(line []byte) uint64 {
	for {
		var e wire.Envelope
		if wire.ParseLine(line, &e) == nil {
			return e.Ack
		}
		i := bytes.Index(line[min(1, len(line)):], []byte(wire.WordVersion))
		if i < 0 {
			return 0
		}
		line = line[i+1:]
	}
}

// Corrupt returns the error of a stop that is vouched for.
func (s *Scanner) Corrupt(st *Stop, vouched uint64) *wire.CorruptError {
	var why string
	if vouched > st.Seq {
		why = fmt.Sprintf("%s, and later lines show that up to seq %d all was durable", st.Why, vouched)
	} else {
		why = fmt.Sprintf("%s, and later lines show that it was durable", st.Why)
	}
	return &wire.CorruptError{File: Path(s.Dir, st.Seg), Offset: st.Off, Seq: st.Seq, Why: why}
}

// Rewind moves the cursor back to just after seq, which must be indexed, and forgets later
// lines. It keeps what was vouched for.
func (s *Scanner) Rewind(seq uint64) error {
	c := Cursor{Ack: s.Cur.Ack}
	if seq > 0 {
		at, _ := slices.BinarySearch(s.Cur.Segs, seq+1)
		c.Segs = slices.Clone(s.Cur.Segs[:at])
		line, e, err := s.ReadLine(seq)
		if err != nil {
			return err
		}
		entry := s.Idx.At(seq)
		c.Off = entry.End()
		c.Seq, c.Hash, c.Kind, c.Step = seq, wire.HashOf(line), string(e.Kind), e.Step
	}
	s.Cur = c
	s.Idx.Truncate(seq)
	return nil
}

// ReadLine reads one indexed line again.
func (s *Scanner) ReadLine(seq uint64) ([]byte, wire.Envelope, error) {
	r := Reader{FS: s.FS, Dir: s.Dir}
	defer r.Close()
	return r.Read(s.Ref(seq))
}

// Ref is the position of an indexed line.
type Ref struct {
	Seq, seg uint64
	off      int64
	size     int
}

// Precedes reports whether the line begins before an offset of a segment.
func (r Ref) Precedes(seg uint64, off int64) bool { return r.seg < seg || r.seg == seg && r.off < off }

// Place returns the line's file, relative to the stream's directory, and where it begins there.
func (r Ref) Place() (file string, off int64) { return Name(r.seg), r.off }

func (s *Scanner) Ref(seq uint64) Ref {
	e := s.Idx.At(seq)
	return Ref{Seq: seq, seg: wire.SegmentOf(s.Cur.Segs, seq), off: e.Off, size: int(e.Size)}
}
