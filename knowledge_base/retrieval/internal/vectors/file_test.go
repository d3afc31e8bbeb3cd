package vectors

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// A cache file is read back; one with any byte changed, or cut anywhere, is none.
func TestDamagedFileIsIgnored(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	f := vectorsFile{Embedder: "e", Dims: 2, Hashes: []byte{1, 2}, Vectors: appendFloats(nil, []float32{1, -2.5})}
	data, err := encodeFile(f)
	if err != nil {
		t.Fatal(err)
	}
	reads := func(data []byte, v any) bool {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return readFile(path, v)
	}
	var back vectorsFile
	if !reads(data, &back) || !reflect.DeepEqual(back, f) ||
		!reflect.DeepEqual(floats(back.Vectors, 2), []float32{1, -2.5}) {
		t.Errorf("read back %+v", back)
	}
	for i := range data {
		damaged := append([]byte(nil), data...)
		damaged[i] ^= 0x20
		if reads(damaged, new(vectorsFile)) {
			t.Errorf("byte %d changed: accepted", i)
		}
		if reads(data[:i:i], new(vectorsFile)) {
			t.Errorf("cut at %d: accepted", i)
		}
	}
	if floats(back.Vectors, 3) != nil || floats(back.Vectors[1:], 1) != nil || floats(nil, -1) != nil {
		t.Error("a wrong number of floats was accepted")
	}
}
