package vectors

import (
	"crypto/sha256"
	"os"
	"reflect"
	"testing"
)

// TestCacheFile: the vectors of one embedder are saved and read back, each with its text; those of another
// are not.
func TestCacheFile(t *testing.T) {
	writes := 0
	write := func(path string, data []byte) error { writes++; return os.WriteFile(path, data, 0o600) }
	known := make(map[[sha256.Size]byte][]float32)
	for i := range 5 {
		known[[sha256.Size]byte{byte(i)}] = []float32{float32(i), -1, 0.5}
	}
	for _, tt := range []struct {
		name    string
		none    bool // without a folder
		unsaved int
		writes  int
		load    string // whose vectors are read
		want    int
	}{
		{"saved", false, 5, 1, "e", 5},
		{"another embedder", false, 5, 1, "other", 0},
		{"nothing new", false, 0, 0, "e", 0},
		{"without a folder", true, 5, 0, "e", 0},
	} {
		dir := t.TempDir()
		if tt.none {
			dir = ""
		}
		writes = 0
		c := &Cache{Dir: dir, WriteFile: write, known: known, unsaved: tt.unsaved}
		c.save("e")
		c.save("e") // it is saved
		back := &Cache{Dir: dir, WriteFile: write}
		back.load(tt.load)
		if writes != tt.writes || len(back.known) != tt.want || tt.want > 0 && !reflect.DeepEqual(back.known, known) {
			t.Errorf("%s: %d files written, %v read back", tt.name, writes, back.known)
		}
	}
}
