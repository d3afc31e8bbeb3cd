package fsys

import (
	"bytes"
	"os"
)

const (
	// holeBytes is the block of most file systems: fewer zeros are worth no hole.
	holeBytes = 4096
	// minHoleBytes is how long a run of zeros must be that a file written in place
	// would have filled.
	minHoleBytes = 64 << 10
)

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

// HoleWriter writes a new file from its beginning and leaves a hole where all that is
// written at once is zeros. A file system without holes fills it.
type HoleWriter struct {
	F   *os.File
	off int64 // of what comes next
	cut bool  // the file's end is not written yet
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

// End extends a file that ends in a hole to its length.
func (h *HoleWriter) End() error {
	if !h.cut {
		return nil
	}
	return h.F.Truncate(h.off)
}
