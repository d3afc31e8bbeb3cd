package powercut

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestCut holds that a cut keeps what was flushed, holds nothing that was not
// written, and sometimes loses, sometimes keeps, and sometimes tears what was
// written since.
func TestCut(t *testing.T) {
	const at, size = 8192, 2048
	fill := func(c byte) []byte { return bytes.Repeat([]byte{c}, size) }
	r := NewRecorder(make([]byte, 16384))
	for _, c := range []byte{'a', 'b'} {
		if err := r.WriteAt(fill(c), at); err != nil {
			t.Fatal(err)
		}
		if c != 'a' {
			continue
		}
		if err := r.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if r.WriteAt(fill('c'), 16000) == nil || r.WriteAt(fill('c'), -1) == nil {
		t.Error("a write past the disk's end was taken")
	}
	if r.Events() != 3 || r.Flushes() != 1 {
		t.Fatalf("%d events, %d flushes", r.Events(), r.Flushes())
	}
	kept, lost, torn := 0, 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		if got := r.Cut(2, 512, rng)[at : at+size]; !bytes.Equal(got, fill('a')) {
			t.Fatalf("seed %d: what was flushed is gone", seed)
		}
		got := r.Cut(3, 512, rng)[at : at+size]
		switch n := bytes.Count(got, []byte{'b'}); {
		case n+bytes.Count(got, []byte{'a'}) != size || n%512 != 0:
			t.Fatalf("seed %d: bytes that were never written, or half a sector", seed)
		case n == size:
			kept++
		case n == 0:
			lost++
		default:
			torn++
		}
		if whole := r.Cut(3, 4096, rng)[at : at+size]; bytes.Count(whole, []byte{'b'})%size != 0 {
			t.Fatalf("seed %d: a sector of 4096 bytes was torn", seed)
		}
	}
	if kept == 0 || lost == 0 || torn == 0 {
		t.Errorf("%d kept, %d lost, %d torn: want each to happen", kept, lost, torn)
	}
}
