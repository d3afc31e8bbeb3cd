package worldstate

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"anamnesis/worldstate/internal/gc"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// TestAppendRaw: what is stored as it is comes back through anybody's zlib, and
// is no longer than its blocks' heads make it.
func TestAppendRaw(t *testing.T) {
	for _, n := range []int{0, 1, objects.RawBytes, 1<<16 - 1, 1 << 16, 3<<16 + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			data := make([]byte, n)
			rng := rand.New(rand.NewPCG(uint64(n), 1))
			for i := range data {
				data[i] = byte(rng.Uint32())
			}
			raw := gitfmt.AppendRaw([]byte("head"), data)
			if !bytes.HasPrefix(raw, []byte("head")) {
				t.Fatal("what stood before is gone")
			}
			if most := len("head") + 2 + 4 + 5*(n/(1<<16-1)+1) + n; len(raw) > most {
				t.Errorf("%d bytes, want at most %d", len(raw), most)
			}
			z, err := zlib.NewReader(bytes.NewReader(raw[len("head"):]))
			if err != nil {
				t.Fatal(err)
			}
			back, err := io.ReadAll(z)
			if err != nil || !bytes.Equal(back, data) {
				t.Errorf("%d bytes back, want the same %d: %v", len(back), n, err)
			}
		})
	}
}

// TestGCCompressesRaw: what a save stored as it is does not stay so.
func TestGCCompressesRaw(t *testing.T) {
	dir := t.TempDir()
	data := bytes.Repeat([]byte("the same\n"), objects.RawBytes/9)
	id := gitfmt.HashObject(gitfmt.BlobObject, data)
	size := func(level int) int64 {
		p := objects.NewWriter(dir, func(string) {}, &objects.Pool{})
		p.Level = level
		defer p.Abort()
		if err := p.Add(id, gitfmt.BlobObject, data); err != nil {
			t.Fatal(err)
		}
		s := finished(t, p, dir)
		if err := s.Check(id, gitfmt.BlobObject, "it"); err != nil {
			t.Fatal(err)
		}
		_, off := s.Lookup(id)
		tight, err := s.Packs[s.PackNames()[0]].Tight(off)
		if want := level > 0; err != nil || tight != want {
			t.Errorf("level %d: compressed well: %t, want %t: %v", level, tight, want, err)
		}
		return p.Off
	}
	if raw, tight := size(0), size(gc.GcLevel); raw < int64(len(data)) || tight > raw/2 {
		t.Errorf("a save's pack has %d bytes, a collection's %d, of %d", raw, tight, len(data))
	}
}

// finished ends a pack and returns a store that consists of it.
func finished(t *testing.T, p *objects.Writer, dir string) *objects.Store {
	t.Helper()
	idx, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s := objects.New(dir)
	t.Cleanup(s.Close)
	if err := s.Published(idx); err != nil {
		t.Fatal(err)
	}
	return s
}
