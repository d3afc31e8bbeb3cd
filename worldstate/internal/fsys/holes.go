package fsys

import (
	"bytes"
	"os"
)

// holeBytes is the block size of most file systems; a shorter run of zeros is written.
const holeBytes = 4096

var zeros = make([]byte, 64<<10) // read only

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
