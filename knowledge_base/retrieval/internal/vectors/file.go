package vectors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
)

// maxFileBytes bounds a cache file, and every number in it.
const maxFileBytes = 1 << 30

var errTooLong = errors.New("longer than a cache file may be")

// fileWriter builds a cache file in memory. The file ends with the CRC-32C of the rest, so that one
// that is torn or damaged is ignored.
type fileWriter struct{ b bytes.Buffer }

// newFile begins a file of the kind that magic names.
func newFile(magic string) *fileWriter {
	w := new(fileWriter)
	w.Text(magic)
	return w
}

// Int adds a number that is not negative, as eight bytes.
func (w *fileWriter) Int(n int) {
	w.b.Write(binary.LittleEndian.AppendUint64(w.b.AvailableBuffer(), uint64(n)))
}

// Bytes adds bytes; the reader must know how many.
func (w *fileWriter) Bytes(p []byte) { w.b.Write(p) }

// Text adds a text with its length.
func (w *fileWriter) Text(s string) {
	w.Int(len(s))
	w.b.WriteString(s)
}

// Floats adds a list with its length.
func (w *fileWriter) Floats(v []float32) {
	w.Int(len(v))
	for _, f := range v {
		w.b.Write(binary.LittleEndian.AppendUint32(w.b.AvailableBuffer(), math.Float32bits(f)))
	}
}

// Seal ends the file and returns its bytes. The writer must not be used afterwards.
func (w *fileWriter) Seal() ([]byte, error) {
	w.b.Write(binary.LittleEndian.AppendUint32(nil, checksum(w.b.Bytes())))
	if n := w.b.Len(); n > maxFileBytes {
		return nil, fmt.Errorf("%d bytes: %w", n, errTooLong)
	}
	return w.b.Bytes(), nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// fileReader reads what [fileWriter] wrote. After the first impossible value, every value is zero and
// OK is false.
type fileReader struct {
	b   []byte
	bad bool
}

// openFile reads the file at path if it is whole and of the kind that magic names.
func openFile(path, magic string) (*fileReader, bool) {
	if info, err := os.Stat(path); err != nil || info.Size() > maxFileBytes {
		return nil, false
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	return parseFile(b, magic)
}

// parseFile is [openFile] for bytes, which the reader retains.
func parseFile(b []byte, magic string) (*fileReader, bool) {
	if len(b) < crc32.Size {
		return nil, false
	}
	b, sum := b[:len(b)-crc32.Size], b[len(b)-crc32.Size:]
	if checksum(b) != binary.LittleEndian.Uint32(sum) {
		return nil, false
	}
	r := &fileReader{b: b}
	return r, r.Text() == magic
}

// OK reports whether every value read so far was possible.
func (r *fileReader) OK() bool { return !r.bad }

// Fail records that a value is impossible.
func (r *fileReader) Fail() { r.bad, r.b = true, nil }

// Bytes returns the next n bytes, or nil if there are fewer. They belong to the reader.
func (r *fileReader) Bytes(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.Fail()
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// Int reads what [fileWriter.Int] wrote.
func (r *fileReader) Int() int {
	b := r.Bytes(8)
	if b == nil {
		return 0
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxFileBytes {
		r.Fail()
		return 0
	}
	return int(n)
}

// Text reads what [fileWriter.Text] wrote.
func (r *fileReader) Text() string { return string(r.Bytes(r.Int())) }

// Floats reads a list that must have n entries.
func (r *fileReader) Floats(n int) []float32 {
	if r.Int() != n {
		r.Fail()
	}
	b := r.Bytes(4 * n)
	if r.bad {
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b))
		b = b[4:]
	}
	return out
}
