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
