package objects

import (
	"bytes"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestDeltaSize: a difference of which the lengths cannot be read, or whose object would
// be too large for memory, is refused.
func TestDeltaSize(t *testing.T) {
	for delta, want := range map[string]int64{
		"\x05\x03\x03abc": 3, "\x85\x01\x81\x01": 129, "": -1, "\x05": -1, "\x05\x80": -1, "\x80": -1,
		"\x05\x80\x80\x80\x80\x04": gitfmt.MaxDeltaBytes, "\x05\x81\x80\x80\x80\x04": -1,
	} {
		if n, err := deltaSize([]byte(delta)); n != want && (err == nil || want >= 0) {
			t.Errorf("%q: %d, %v; want %d", delta, n, err, want)
		}
	}
	out, err := applyDelta([]byte("hello"), []byte("\x05\x06\x90\x05\x01!"))
	if err != nil || !bytes.Equal(out, []byte("hello!")) {
		t.Errorf("%q, %v", out, err)
	}
}

func FuzzDelta(f *testing.F) {
	f.Add([]byte("hello"), []byte("\x05\x05\x90\x05"))
	f.Add([]byte("hello"), []byte("\x05\x03\x03abc"))
	f.Fuzz(func(t *testing.T, before, delta []byte) {
		out, err := applyDelta(before, delta)
		if err == nil && len(out) > 1<<20 && len(delta) < 10 {
			t.Fatal("grown out of nothing")
		}
	})
}
