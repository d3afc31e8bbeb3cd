// Package sealed reads and writes binary files that are derived from others and can be
// made again. Each ends with the CRC-32C of the rest; a file that is torn, damaged or of
// another kind is ignored.
package sealed

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// MaxBytes bounds a file, and every number in it.
const MaxBytes = 1 << 30

// ErrTooLong is returned for a file that would be longer than [MaxBytes].
var ErrTooLong = errors.New("longer than a sealed file may be")

// Writer builds a file in memory. The zero value is empty.
type Writer struct{ b bytes.Buffer }

// NewWriter begins a file of the kind that magic names.
func NewWriter(magic string) *Writer {
	w := new(Writer)
	w.Text(magic)
	return w
}

// Int adds a number that is not negative, as eight bytes.
func (w *Writer) Int(n int) {
	w.b.Write(binary.LittleEndian.AppendUint64(w.b.AvailableBuffer(), uint64(n)))
}

// Uint adds a number, the shorter the smaller it is.
func (w *Writer) Uint(n uint64) {
	w.b.Write(binary.AppendUvarint(w.b.AvailableBuffer(), n))
}

// Bytes adds bytes; the reader must know how many.
func (w *Writer) Bytes(p []byte) { w.b.Write(p) }

// Text adds a text with its length.
func (w *Writer) Text(s string) {
	w.Int(len(s))
	w.b.WriteString(s)
}

// Floats adds a list with its length.
func (w *Writer) Floats(v []float32) {
	w.Int(len(v))
	for _, f := range v {
		w.b.Write(binary.LittleEndian.AppendUint32(w.b.AvailableBuffer(), math.Float32bits(f)))
	}
}

// Unsealed returns the bytes written so far, which belong to the writer.
func (w *Writer) Unsealed() []byte { return w.b.Bytes() }

// Seal ends the file and returns its bytes. The writer must not be used afterwards.
func (w *Writer) Seal() ([]byte, error) {
	w.b.Write(binary.LittleEndian.AppendUint32(nil, checksum(w.b.Bytes())))
	if n := w.b.Len(); n > MaxBytes {
		return nil, fmt.Errorf("%d bytes: %w", n, ErrTooLong)
	}
	return w.b.Bytes(), nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// Reader reads what [Writer] wrote. After the first impossible value, every value is zero and
// [Reader.OK] is false.
type Reader struct {
	b      []byte
	bad    bool
	mapped []byte // the file in memory; nil if there is none to release
}

// Open maps the file at path into memory if it is whole and of the kind that magic names. Other
// processes may replace the file meanwhile, but not write into it. The caller closes the reader.
// A mapping keeps the 16 MB of the cards and the words of 10,000 cards off the heap of each
// process that has them open; it is not faster than reading them.
func Open(path, magic string) (*Reader, bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() > MaxBytes || info.Size() == 0 {
		return nil, false
	}
	// A private mapping may be written to, which changes memory only.
	b, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	if err != nil {
		return nil, false
	}
	r, ok := Parse(b, magic)
	if !ok {
		_ = unix.Munmap(b) // it was just mapped
		return nil, false
	}
	r.mapped = b
	return r, true
}

// Close releases the file's memory, and with it what [Reader.Bytes] returned. A nil reader and one of [Parse] have none.
func (r *Reader) Close() {
	if r != nil && r.mapped != nil {
		_ = unix.Munmap(r.mapped) // it is mapped until now
		r.b, r.mapped = nil, nil
	}
}

// Parse is [Open] for bytes, which the reader retains.
func Parse(b []byte, magic string) (*Reader, bool) {
	if len(b) < crc32.Size {
		return nil, false
	}
	b, sum := b[:len(b)-crc32.Size], b[len(b)-crc32.Size:]
	if checksum(b) != binary.LittleEndian.Uint32(sum) {
		return nil, false
	}
	r := &Reader{b: b}
	return r, r.Text() == magic
}

// NewReader returns a reader of bytes without a checksum. It retains them.
func NewReader(b []byte) *Reader { return &Reader{b: b} }

// OK reports whether every value read so far was possible.
func (r *Reader) OK() bool { return !r.bad }

// Fail records that a value is impossible.
func (r *Reader) Fail() { r.bad, r.b = true, nil }

// Left returns how many bytes are left.
func (r *Reader) Left() int { return len(r.b) }

// Bytes returns the next n bytes, or nil if there are fewer. They belong to the reader.
func (r *Reader) Bytes(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.Fail()
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

// Int reads what [Writer.Int] wrote.
func (r *Reader) Int() int {
	b := r.Bytes(8)
	if b == nil {
		return 0
	}
	n := binary.LittleEndian.Uint64(b)
	if n > MaxBytes {
		r.Fail()
		return 0
	}
	return int(n)
}

// Uint reads what [Writer.Uint] wrote.
func (r *Reader) Uint() uint64 {
	n, size := binary.Uvarint(r.b)
	if size <= 0 {
		r.Fail()
		return 0
	}
	r.b = r.b[size:]
	return n
}

// Count reads what [Writer.Uint] wrote as a number of things that take at
// least a byte each: there are never more than bytes left.
func (r *Reader) Count() int {
	n := r.Uint()
	if n > uint64(len(r.b)) {
		r.Fail()
		return 0
	}
	return int(n)
}

// Text reads what [Writer.Text] wrote.
func (r *Reader) Text() string { return string(r.Bytes(r.Int())) }

// Floats reads a list that must have n entries.
func (r *Reader) Floats(n int) []float32 {
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
