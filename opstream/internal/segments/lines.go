package segments

import (
	"errors"
	"fmt"
	"io"
	"os"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

const (
	// readFirstBytes and readAheadBytes are how much of a segment is read at
	// once at first and, when many records are read in order, at last.
	readFirstBytes = 4 << 10
	readAheadBytes = 256 << 10
)

// Reader reads lines by reference, fastest in order. It is not safe for concurrent use.
type Reader struct {
	FS  durable.FS
	Dir string
	f   durable.File
	seg uint64
	Buf []byte // bytes of seg from off on
	off int64
	// Chained is the last line whose prev is checked when it is read right after the line
	// before it: no scan has verified the chain up to there.
	Chained uint64
	seq     uint64 // the line read last
	hash    wire.Hash
}

func (r *Reader) Close() {
	if r.f != nil {
		r.f.Close()
		r.f, r.seg, r.Buf = nil, 0, r.Buf[:0]
	}
}

// Read returns the line a reference names, verified against its checksum and seq. The line is
// valid until the next call. A mismatch is a *CorruptError.
func (r *Reader) Read(ref Ref) ([]byte, wire.Envelope, error) {
	var e wire.Envelope
	if r.seg != ref.seg {
		r.Close()
		f, err := r.FS.Open(Path(r.Dir, ref.seg), os.O_RDONLY)
		if err != nil {
			return nil, e, fmt.Errorf("open segment: %w", err)
		}
		r.f, r.seg = f, ref.seg
	}
	if ref.off < r.off || ref.off+int64(ref.size) > r.off+int64(len(r.Buf)) {
		// A single record costs little; reading in order doubles the stride.
		if n := max(ref.size, min(2*cap(r.Buf), readAheadBytes), readFirstBytes); n > cap(r.Buf) {
			r.Buf = make([]byte, n)
		}
		r.Buf, r.off = r.Buf[:cap(r.Buf)], ref.off
		n, err := r.f.ReadAt(r.Buf, ref.off)
		r.Buf = r.Buf[:n]
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, e, fmt.Errorf("read segment %s: %w", Name(ref.seg), err)
		}
	}
	from := int(ref.off - r.off)
	var err error
	var line []byte
	if from+ref.size > len(r.Buf) {
		err = wire.Error("the segment ends early")
	} else {
		line = r.Buf[from : from+ref.size]
		err = wire.ParseLine(line, &e)
	}
	switch {
	case err != nil:
	case e.Seq != ref.Seq:
		err = wire.Error(fmt.Sprintf("seq is %d, expected %d", e.Seq, ref.Seq))
	case ref.Seq > r.Chained:
	case ref.Seq == r.seq+1 && r.seq > 0 && e.Prev != r.hash:
		err = wire.ErrChain
	default:
		r.seq, r.hash = ref.Seq, wire.HashOf(line)
	}
	if err != nil {
		return nil, e, &wire.CorruptError{
			File: Path(r.Dir, ref.seg), Offset: ref.off, Seq: ref.Seq, Why: err.Error(),
		}
	}
	return line, e, nil
}
