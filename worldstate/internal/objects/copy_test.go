package objects

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"anamnesis/worldstate/internal/gitfmt"
)

// TestCopy: an object is copied whole, a large blob as well, and one that is missing is named.
func TestCopy(t *testing.T) {
	noise := make([]byte, WholeFileBytes+1)
	rand.NewChaCha8([32]byte{}).Read(noise)
	for _, tt := range []struct {
		name string
		kind gitfmt.ObjectType
		data []byte
	}{
		{"empty", gitfmt.BlobObject, nil},
		{"small", gitfmt.BlobObject, []byte("text\n")},
		{"the largest read at once", gitfmt.BlobObject, noise[1:]},
		{"larger", gitfmt.BlobObject, noise},
		{"no blob", gitfmt.CommitObject, noise},
	} {
		from, to := t.TempDir(), t.TempDir()
		w := NewWriter(from, func(string) {}, &Pool{})
		h := gitfmt.HashObject(tt.kind, tt.data)
		if err := w.Add(h, tt.kind, tt.data); err != nil {
			t.Fatal(err)
		}
		s := finished(t, w, from)
		out := NewWriter(to, func(string) {}, &Pool{})
		size, err := s.Copy(out, tt.kind, h, "f")
		if err != nil || size != int64(len(tt.data)) {
			t.Errorf("%s: %d bytes, %v", tt.name, size, err)
			out.Abort()
			continue
		}
		if data, err := finished(t, out, to).Read(h, tt.kind, "f"); err != nil || !bytes.Equal(data, tt.data) {
			t.Errorf("%s: %d bytes were copied, %v", tt.name, len(data), err)
		}
		lost := NewWriter(to, func(string) {}, &Pool{})
		defer lost.Abort()
		var missing *gitfmt.MissingObjectError
		if _, err := s.Copy(lost, tt.kind, gitfmt.Hash{1}, "f"); !errors.As(err, &missing) || missing.Path != "f" {
			t.Errorf("%s: of a missing object: %v", tt.name, err)
		}
	}
}

// TestReadUpTo: an object as long as the bound is read, a longer one and one of another kind are not.
func TestReadUpTo(t *testing.T) {
	dir, data := t.TempDir(), []byte("text\n")
	w := NewWriter(dir, func(string) {}, &Pool{})
	h := gitfmt.HashObject(gitfmt.BlobObject, data)
	if err := w.Add(h, gitfmt.BlobObject, data); err != nil {
		t.Fatal(err)
	}
	s := finished(t, w, dir)
	for _, tt := range []struct {
		name string
		kind gitfmt.ObjectType
		most int64
		want error
	}{
		{"it fits", gitfmt.BlobObject, 5, nil},
		{"it is too long", gitfmt.BlobObject, 4, ErrTooLarge},
		{"another kind", gitfmt.TreeObject, 5, ErrWrongType},
	} {
		for _, buf := range [][]byte{nil, make([]byte, 4), make([]byte, 5), make([]byte, 6), make([]byte, 64)} {
			got, err := s.ReadInto(buf, h, tt.kind, "f", tt.most)
			if !errors.Is(err, tt.want) || tt.want == nil && !bytes.Equal(got, data) {
				t.Errorf("%s, into %d bytes: %q, %v", tt.name, len(buf), got, err)
			}
			if tt.want == nil && len(buf) > len(data) && &got[0] != &buf[0] {
				t.Errorf("%s: %d bytes are not used", tt.name, len(buf))
			}
		}
	}
}
