//go:build unix

package objects

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/iotest"

	"anamnesis/worldstate/internal/gitfmt"
)

var errDisk = errors.New("the disk is broken")

// streamed is a large blob as addStream is given it, and what must come of it.
type streamed struct {
	name string
	data []byte
	want gitfmt.Hash
	r    func(data []byte) io.Reader
	err  error
}

func streams(name string, data []byte) []streamed {
	id := gitfmt.HashObject(gitfmt.BlobObject, data)
	whole := func(data []byte) io.Reader { return bytes.NewReader(data) }
	return []streamed{
		{name, data, id, whole, nil},
		{name + ", another's id", data, gitfmt.Hash{1}, whole, ErrContentChanged},
		{name + ", cut short", data, id, func(d []byte) io.Reader { return bytes.NewReader(d[:len(d)-1]) }, ErrContentChanged},
		{name + ", grown", data, id, func(d []byte) io.Reader { return io.MultiReader(bytes.NewReader(d), bytes.NewReader([]byte{1})) }, ErrContentChanged},
		{name + ", unreadable at the end", data, id, func(d []byte) io.Reader {
			return io.MultiReader(bytes.NewReader(d), iotest.ErrReader(errDisk))
		}, errDisk},
	}
}

// TestAddStream: a large blob is in the pack whole or not at all, and what is
// around it is intact.
func TestAddStream(t *testing.T) {
	noise := make([]byte, 5<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	for _, c := range append(streams("small", make([]byte, 3<<20)), streams("large", noise)...) {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			p := NewWriter(dir, func(string) {}, &Pool{})
			defer p.Abort()
			around := [][]byte{[]byte("before\n"), []byte("after\n")}
			add := func(data []byte) {
				if err := p.Add(gitfmt.HashObject(gitfmt.BlobObject, data), gitfmt.BlobObject, data); err != nil {
					t.Fatal(err)
				}
			}
			add(around[0])
			err := p.AddStream(c.want, int64(len(c.data)), c.r(c.data))
			if !errors.Is(err, c.err) || errors.As(err, new(*StoreFault)) {
				t.Fatalf("addStream: %v, want %v and no fault of the store", err, c.err)
			}
			id := gitfmt.HashObject(gitfmt.BlobObject, c.data)
			add(around[1])
			s := finished(t, p, dir)
			for _, data := range around {
				if back, err := s.Read(gitfmt.HashObject(gitfmt.BlobObject, data), gitfmt.BlobObject, "around"); err != nil || !bytes.Equal(back, data) {
					t.Errorf("what stands around it: %q, %v", back, err)
				}
			}
			if has := s.Owns(id); has != (c.err == nil) {
				t.Fatalf("the pack holds it: %t, want %t", has, c.err == nil)
			}
			if c.err == nil {
				if err := s.Check(id, gitfmt.BlobObject, "large"); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// finished ends a pack and returns a store that consists of it.
func finished(t *testing.T, p *Writer, dir string) *Store {
	t.Helper()
	idx, err := p.Finish()
	if err != nil {
		t.Fatal(err)
	}
	s := New(dir)
	t.Cleanup(s.Close)
	if err := s.Published(idx); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAddStreamAtOnce: several large blobs and many small ones at the same time,
// and one of them twice.
func TestAddStreamAtOnce(t *testing.T) {
	dir := t.TempDir()
	p := NewWriter(dir, func(string) {}, &Pool{})
	defer p.Abort()
	large := make([][]byte, 6)
	for i := range large {
		large[i] = bytes.Repeat([]byte{byte(i % 5), 1}, 1<<20)
	}
	var wg sync.WaitGroup
	for _, data := range large {
		wg.Go(func() {
			if err := p.AddStream(gitfmt.HashObject(gitfmt.BlobObject, data), int64(len(data)), bytes.NewReader(data)); err != nil {
				t.Error(err)
			}
		})
	}
	for i := range 300 {
		small := bytes.Repeat([]byte{byte(i), byte(i >> 8)}, i)
		wg.Go(func() {
			if err := p.Add(gitfmt.HashObject(gitfmt.BlobObject, small), gitfmt.BlobObject, small); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := len(p.Items); n != 5+300 {
		t.Errorf("%d objects in the pack, want 305", n)
	}
	s := finished(t, p, dir)
	for _, data := range large {
		if err := s.Check(gitfmt.HashObject(gitfmt.BlobObject, data), gitfmt.BlobObject, "large"); err != nil {
			t.Error(err)
		}
	}
}
