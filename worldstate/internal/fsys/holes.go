package fsys

import (
	"bytes"
	"os"
)

const (
	// holeBytes is the block size of most file systems; a shorter run of zeros is written.
	holeBytes = 4096
	// minHoleBytes is the run of zeros for which a file is written anew, with a hole, and not
	// in place.
	minHoleBytes = 64 << 10
)

var zeros = make([]byte, minHoleBytes) // read only

// HasHole reports whether data has a run of zeros of at least minHoleBytes.
func HasHole(data []byte) bool {
	for len(data) >= minHoleBytes {
		if bytes.Equal(data[:minHoleBytes], zeros) {
			return true
		}
		data = data[minHoleBytes/2:]
	}
	return false
}

// HoleWriter writes a new file sequentially and leaves a hole for each write of zeros only. A
// file system without holes fills it.
type HoleWriter struct {
	F   *os.File
	off int64 // of the next write
	cut bool  // the file ends in a hole
}

func (h *HoleWriter) Write(b []byte) (int, error) {
	if h.cut = len(b) >= holeBytes && len(b) <= len(zeros) && bytes.Equal(b, zeros[:len(b)]); !h.cut {
		if n, err := h.F.WriteAt(b, h.off); err != nil {
			return n, err
		}
	}
	h.off += int64(len(b))
	return len(b), nil
}

// End extends a file that ends in a hole to its full length.
func (h *HoleWriter) End() error {
	if !h.cut {
		return nil
	}
	return h.F.Truncate(h.off)
}
