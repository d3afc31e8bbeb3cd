package vectors

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

const testMagic = "test 1\n"

func written(t testing.TB) []byte {
	w := newFile(testMagic)
	w.Int(7)
	w.Text("text")
	w.Floats([]float32{1, -2.5})
	w.Bytes([]byte{9, 8})
	data, err := w.Seal()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReadsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, written(t), 0o600); err != nil {
		t.Fatal(err)
	}
	r, ok := openFile(path, testMagic)
	if !ok {
		t.Fatal("not whole")
	}
	n, s, f, b := r.Int(), r.Text(), r.Floats(2), r.Bytes(2)
	if n != 7 || s != "text" || len(f) != 2 || f[1] != -2.5 || len(b) != 2 || b[1] != 8 || !r.OK() || len(r.b) != 0 {
		t.Errorf("read %d %q %v %v, ok %v, %d left", n, s, f, b, r.OK(), len(r.b))
	}
	if r.Int() != 0 || r.OK() {
		t.Error("more was read than there is")
	}
}

// A file with any one byte changed, or cut anywhere, or of another kind, is none.
func TestDamageIsSeen(t *testing.T) {
	data := written(t)
	for i := range data {
		damaged := append([]byte(nil), data...)
		damaged[i] ^= 0x20
		if _, ok := parseFile(damaged, testMagic); ok {
			t.Errorf("byte %d changed: taken for whole", i)
		}
		if _, ok := parseFile(data[:i:i], testMagic); ok {
			t.Errorf("cut at %d: taken for whole", i)
		}
	}
	if _, ok := parseFile(data, "test 2\n"); ok {
		t.Error("another kind was taken")
	}
	if _, ok := openFile(filepath.Join(t.TempDir(), "none"), testMagic); ok {
		t.Error("a file that is not there was taken")
	}
}

// A number beyond all files, as of a file made on purpose, allocates nothing.
func TestNumbersAreBounded(t *testing.T) {
	w := new(fileWriter)
	w.Int(math.MaxInt)
	r := &fileReader{b: w.b.Bytes()}
	if n := r.Int(); n != 0 || r.OK() {
		t.Errorf("read the number %d", n)
	}
}

// Whatever the bytes, reading ends and returns no more than was there.
func FuzzFileReader(f *testing.F) {
	f.Add(written(f))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		parseFile(data, testMagic)
		r := &fileReader{b: data}
		for r.OK() && len(r.b) > 0 {
			before := len(r.b)
			got := len(r.Text())
			got += len(r.Floats(len(data) % 5))
			if got > before {
				t.Fatalf("%d things from %d bytes", got, before)
			}
		}
	})
}
