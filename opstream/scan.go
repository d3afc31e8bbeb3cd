package opstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// cursor is a verified position: everything before it has the format's form,
// a right checksum, its place in the sequence and in the chain.
type cursor struct {
	segs []uint64 // the segments up to here, by first seq
	off  int64    // in the last of segs, just past the last verified line
	seq  uint64   // of the last verified line
	hash lineHash // of the last verified line
	ack  uint64   // the highest seq something verified vouches for
	kind string   // of the last verified line
	step int      // of the last verified line
}

// seg is the segment the cursor stands in; 0 before the first.
func (c *cursor) seg() uint64 {
	if len(c.segs) == 0 {
		return 0
	}
	return c.segs[len(c.segs)-1]
}

// stop is why a scan ended before the end of the bytes.
type stop struct {
	seg     uint64
	off     int64
	seq     uint64 // the line that was expected
	why     string
	partial bool // bytes without a newline: perhaps a write under way
}

// scanner verifies a stream from its cursor on and indexes what it verified.
// It is not safe for concurrent use; its owner locks.
type scanner struct {
	fs  FS
	dir string
	cur cursor
	idx index
	// visit, when set, is shown every verified line, where it begins and its
	// size without the newline.
	visit func(e *envelope, off int64, size int) error
}

// advance verifies lines up to the end of the bytes, across segments. It
// returns nil there, and otherwise the stop. The error is the file system's,
// or ErrVersion.
//
// The directory is listed when the segments of the last listing are used up,
// and not for each of them: a listing costs as much as there are segments.
func (s *scanner) advance() (*stop, error) {
	var ahead []uint64 // listed and not yet entered
	for {
		if s.cur.seg() != 0 {
			if st, err := s.advanceSegment(); st != nil || err != nil {
				return st, err
			}
		}
		if len(ahead) == 0 {
			segs, _, err := listSegments(s.fs, s.dir)
			if err != nil {
				return nil, fmt.Errorf("list segments of %s: %w", s.dir, err)
			}
			at, entered := slices.BinarySearch(segs, s.cur.seg())
			if entered {
				at++
			}
			if ahead = segs[at:]; len(ahead) == 0 {
				return nil, nil
			}
		}
		next := ahead[0]
		ahead = ahead[1:]
		if next != s.cur.seq+1 {
			return &stop{
				seg: max(s.cur.seg(), 1), off: s.cur.off, seq: s.cur.seq + 1,
				why: fmt.Sprintf("the lines before %s are missing", segmentName(next)),
			}, nil
		}
		s.cur.segs = append(s.cur.segs, next)
		s.cur.off = 0
		// A segment is made only after everything before it is durable.
		s.cur.ack = max(s.cur.ack, next-1)
	}
}

// advanceSegment verifies the rest of the cursor's segment.
func (s *scanner) advanceSegment() (*stop, error) {
	seg := s.cur.seg()
	f, err := s.fs.Open(segmentPath(s.dir, seg), os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, fmt.Errorf("size of segment %s: %w", segmentName(seg), err)
	}
	if size == s.cur.off {
		return nil, nil
	}
	at := func(why string, partial bool) *stop {
		return &stop{seg: seg, off: s.cur.off, seq: s.cur.seq + 1, why: why, partial: partial}
	}
	if size < s.cur.off {
		return at("the segment ends early", false), nil
	}
	lines := newLineReader(f, s.cur.off, size)
	var e envelope
	for {
		line, _, state, err := lines.next()
		if err != nil {
			return nil, fmt.Errorf("read segment %s: %w", segmentName(seg), err)
		}
		switch state {
		case lineEnd:
			return nil, nil
		case linePartial:
			return at("the line has no end", true), nil
		case lineLong:
			return at(fmt.Sprintf("the line is longer than %d bytes", maxLineBytes), false), nil
		}
		if err := parseLine(line, &e); err != nil {
			if isVersionError(err) {
				return nil, fmt.Errorf("read %s at byte %d: %w; a newer program wrote it", segmentName(seg), s.cur.off, err)
			}
			return at(err.Error(), false), nil
		}
		if why := s.cur.misfit(&e); why != "" {
			return at(why, false), nil
		}
		if s.visit != nil {
			if err := s.visit(&e, s.cur.off, len(line)); err != nil {
				return nil, err
			}
		}
		s.accept(len(line), hashLine(line), &e)
	}
}

// misfit says why a line does not follow the cursor; empty when it does.
func (c *cursor) misfit(e *envelope) string {
	switch {
	case e.seq != c.seq+1:
		return fmt.Sprintf("seq is %d, expected %d", e.seq, c.seq+1)
	case e.prev != c.hash:
		return errLineChain.Error()
	}
	return ""
}

// accept moves the cursor past a verified line, its size without the newline,
// and indexes it.
func (s *scanner) accept(size int, hash lineHash, e *envelope) {
	s.idx.add(s.cur.off, size, e)
	s.cur.off += int64(size) + 1
	s.cur.seq = e.seq
	s.cur.hash = hash
	s.cur.ack = max(s.cur.ack, e.ack)
	s.cur.step = e.step
	if s.cur.kind != string(e.kind) {
		s.cur.kind = string(e.kind)
	}
}

// vouched returns the highest seq that anything behind a stop vouches for: the
// acks of whole lines with a right checksum, and the existence of later
// segments. A stop at or below it is corruption, any other a torn tail.
//
// That a good line follows a bad one means nothing by itself: the sectors of
// one write reach the disk in any order.
func (s *scanner) vouched(st *stop) (uint64, error) {
	segs, _, err := listSegments(s.fs, s.dir)
	if err != nil {
		return 0, fmt.Errorf("list segments of %s: %w", s.dir, err)
	}
	var ack uint64
	for _, first := range segs {
		if first > st.seg {
			ack = max(ack, first-1)
		}
	}
	if ack >= st.seq || s.cur.seg() == 0 {
		return ack, nil
	}
	f, err := s.fs.Open(segmentPath(s.dir, st.seg), os.O_RDONLY)
	if err != nil {
		return 0, fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	lines := newLineReader(f, st.off, st.off)
	for {
		line, off, state, err := lines.next()
		if err != nil {
			return 0, fmt.Errorf("read segment %s: %w", segmentName(st.seg), err)
		}
		switch state {
		case lineEnd, linePartial:
			return ack, nil
		case lineLong:
			// Two lines whose newline was damaged may be longer than one may be.
			if line, err = lineEndBytes(f, off, lines.off-1); err != nil {
				return 0, fmt.Errorf("read segment %s: %w", segmentName(st.seg), err)
			}
		}
		ack = max(ack, ackWithin(line))
	}
}

// lineEndBytes returns the last bytes of what stands from from up to to, as many
// as the longest line has.
func lineEndBytes(f File, from, to int64) ([]byte, error) {
	from = max(from, to-maxLineBytes)
	data := make([]byte, to-from)
	n, err := f.ReadAt(data, from)
	if errors.Is(err, io.EOF) {
		err = nil // withdrawn meanwhile by a live writer
	}
	return data[:n], err
}

// ackWithin returns the ack of a line, or of the good line at the end of one:
// where a newline was damaged, the line behind it still vouches. 0 for none.
func ackWithin(line []byte) uint64 {
	for {
		var e envelope
		if parseLine(line, &e) == nil {
			return e.ack
		}
		i := bytes.Index(line[min(1, len(line)):], []byte(wordVersion))
		if i < 0 {
			return 0
		}
		line = line[i+1:]
	}
}

// corrupt makes the error of a stop that is vouched for.
func (s *scanner) corrupt(st *stop, vouched uint64) *CorruptError {
	var why string
	if vouched > st.seq {
		why = fmt.Sprintf("%s, and later lines show that up to seq %d all was durable", st.why, vouched)
	} else {
		why = fmt.Sprintf("%s, and later lines show that it was durable", st.why)
	}
	return &CorruptError{File: segmentPath(s.dir, st.seg), Offset: st.off, Seq: st.seq, Why: why}
}

// rewind moves the cursor back to just after seq, which must be indexed, and
// forgets what came later. What was vouched for stays so.
func (s *scanner) rewind(seq uint64) error {
	c := cursor{ack: s.cur.ack}
	if seq > 0 {
		for _, first := range s.cur.segs {
			if first <= seq {
				c.segs = append(c.segs, first)
			}
		}
		line, e, err := s.readLine(seq)
		if err != nil {
			return err
		}
		entry := s.idx.at(seq)
		c.off = entry.end()
		c.seq, c.hash, c.kind, c.step = seq, hashLine(line), string(e.kind), e.step
	}
	s.cur = c
	s.idx.truncate(seq)
	return nil
}

// readLine reads one indexed line again.
func (s *scanner) readLine(seq uint64) ([]byte, envelope, error) {
	r := segmentReader{fs: s.fs, dir: s.dir}
	defer r.close()
	line, e, err := r.read(s.ref(seq))
	return line, e, err
}

// lineRef says where an indexed line stands.
type lineRef struct {
	seq, seg uint64
	off      int64
	size     int
}

func (s *scanner) ref(seq uint64) lineRef { return s.refOf(seq, s.idx.at(seq)) }

func (s *scanner) refOf(seq uint64, e indexEntry) lineRef {
	return lineRef{seq: seq, seg: segmentOf(s.cur.segs, seq), off: e.off, size: int(e.size)}
}
