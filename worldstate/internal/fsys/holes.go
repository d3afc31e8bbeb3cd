package fsys

import (
	"bytes"
	"context"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// holeBytes is the piece of a file that becomes a hole where it is all zeros: the
// block of most file systems.
const holeBytes = 4096

// minHoleBytes is how long a run of zeros must be that a file written in place
// would have filled.
const minHoleBytes = 64 << 10

var zeros = make([]byte, minHoleBytes) // read only

// HasHole reports whether data has a run of zeros that is worth a hole.
func HasHole(data []byte) bool {
	for len(data) >= minHoleBytes {
		if bytes.Equal(data[:minHoleBytes], zeros) {
			return true
		}
		data = data[minHoleBytes/2:]
	}
	return false
}

// HoleWriter writes a new file from its beginning and leaves holes for blocks of
// zeros. A file system without holes fills them.
type HoleWriter struct {
	F   *os.File
	off int64 // of what comes next
	cut bool  // the file's end is not written yet
}

func (h *HoleWriter) Write(b []byte) (int, error) {
	total := len(b)
	for len(b) > 0 {
		n, zero := leading(b, int(-h.off&(holeBytes-1)))
		if !zero {
			if _, err := h.F.WriteAt(b[:n], h.off); err != nil {
				return total - len(b), err
			}
		}
		h.off, h.cut, b = h.off+int64(n), zero, b[n:]
	}
	return total, nil
}

// leading returns how many bytes of b are alike: whole blocks of zeros, or anything
// else. first is where the first block begins.
func leading(b []byte, first int) (n int, zero bool) {
	block := func(at int) bool { return at+holeBytes <= len(b) && bytes.Equal(b[at:at+holeBytes], zeros[:holeBytes]) }
	if first == 0 && block(0) {
		for n = holeBytes; block(n); n += holeBytes {
		}
		return n, true
	}
	if first == 0 {
		first = holeBytes
	}
	for n = first; n+holeBytes <= len(b) && !block(n); n += holeBytes {
	}
	if n+holeBytes > len(b) {
		n = len(b)
	}
	return n, false
}

// End extends a file that ends in a hole to its length.
func (h *HoleWriter) End() error {
	if !h.cut {
		return nil
	}
	return h.F.Truncate(h.off)
}

// HoleReader reads a large file's bytes and does not ask the file system for what
// lies in holes. It reports how far it is, and stops when its context ends.
type HoleReader struct {
	Ctx   context.Context
	F     *os.File
	off   int64
	until int64 // the end of the hole or of the data at off
	hole  bool
	Count func(n int64)
}

func (h *HoleReader) Read(b []byte) (int, error) {
	if err := h.Ctx.Err(); err != nil {
		return 0, err
	}
	if len(b) == 0 {
		return 0, nil
	}
	if h.off >= h.until {
		if err := h.next(); err != nil {
			return 0, err
		}
	}
	if h.until > h.off && int64(len(b)) > h.until-h.off {
		b = b[:h.until-h.off]
	}
	n, err := len(b), error(nil)
	if h.hole {
		clear(b)
	} else {
		n, err = h.F.ReadAt(b, h.off)
		if n > 0 {
			err = nil
		}
	}
	h.off += int64(n)
	h.Count(int64(n))
	return n, err
}

// next finds out what lies at the place reached. Where the file system does not
// say, all of the rest is data.
func (h *HoleReader) next() error {
	h.hole = false
	st, err := Fstat(int(h.F.Fd()))
	if err != nil {
		return err
	}
	if h.off >= st.Size {
		return io.EOF
	}
	h.until = st.Size
	data, err := unix.Seek(int(h.F.Fd()), h.off, seekData)
	switch {
	case IsErrno(err, unix.ENXIO): // nothing but a hole up to the end
		h.hole = true
	case err != nil:
	case data > h.off:
		h.hole, h.until = true, min(data, st.Size)
	default:
		if hole, err := unix.Seek(int(h.F.Fd()), h.off, seekHole); err == nil && hole > h.off {
			h.until = min(hole, st.Size)
		}
	}
	return nil
}
