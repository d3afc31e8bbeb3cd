package vectors

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"hash/crc32"
	"os"
)

const maxFileBytes = 1 << 30

// encodeFile returns the bytes of a cache file: a value in gob's form and its CRC-32C, so that a
// damaged file is ignored.
func encodeFile(v any) ([]byte, error) {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		return nil, err
	}
	if b.Len() > maxFileBytes-crc32.Size {
		return nil, fmt.Errorf("%d bytes: longer than a cache file may be", b.Len())
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), checksum(b.Bytes())), nil
}

// readFile reads a cache file into v and reports whether it is whole. The caller checks the
// fingerprint in it: gob reads a file of another kind as one without values.
func readFile(path string, v any) bool {
	if info, err := os.Stat(path); err != nil || info.Size() > maxFileBytes {
		return false
	}
	data, err := os.ReadFile(path)
	n := len(data) - crc32.Size
	return err == nil && n >= 0 && checksum(data[:n]) == binary.LittleEndian.Uint32(data[n:]) &&
		gob.NewDecoder(bytes.NewReader(data[:n])).Decode(v) == nil
}

func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// appendFloats appends numbers as bytes, which gob copies instead of coding each number.
func appendFloats(b []byte, v []float32) []byte {
	b, err := binary.Append(b, binary.LittleEndian, v)
	if err != nil {
		panic("vectors: " + err.Error()) // numbers of a fixed size always encode
	}
	return b
}

// floats returns n numbers that appendFloats wrote; nil if b holds another number of them.
func floats(b []byte, n int) []float32 {
	if n < 0 || len(b)/4 != n || len(b)%4 != 0 {
		return nil
	}
	v := make([]float32, n)
	if _, err := binary.Decode(b, binary.LittleEndian, v); err != nil {
		return nil
	}
	return v
}
