package fsys

import (
	"bytes"
	"io"
	"os"
)

// holeBytes is the block size of most file systems; a shorter run of zeros is written.
const holeBytes = 4096

// HoleWriter writes a new file sequentially and leaves a hole for each write of zeros only. A file system without
// holes fills it. At the end the file has to be extended to its length: the last write may have left a hole.
type HoleWriter struct{ File *os.File }

func (h HoleWriter) Write(b []byte) (int, error) {
	if len(b) < holeBytes || len(bytes.TrimLeft(b, "\x00")) > 0 {
		return h.File.Write(b)
	}
	_, err := h.File.Seek(int64(len(b)), io.SeekCurrent)
	return len(b), err
}
