package gc_test

import (
	"os"
	"slices"
	"testing"

	"anamnesis/worldstate/internal/gc"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// TestKeptRoots: a collection keeps snapshots that a caller names, and skips those that the store
// had lost before.
func TestKeptRoots(t *testing.T) {
	t.Parallel()
	s := objects.New(t.TempDir())
	defer s.Close()
	text := []byte("named")
	h := gitfmt.HashObject(gitfmt.BlobObject, text)
	err := os.MkdirAll(s.PackDir(), 0o700)
	if err == nil {
		w := objects.NewWriter(s.PackDir(), func(string) {}, &objects.Pool{})
		if err = w.Add(h, gitfmt.BlobObject, text); err == nil {
			err = s.Publish(w, 0)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	keep := []gitfmt.ID{gitfmt.ID(gitfmt.Hash{1}.String()), gitfmt.ID(h.String())}
	if roots, err := gc.KeptRoots(s, keep); err != nil || !slices.Equal(roots, []gitfmt.Hash{h}) {
		t.Errorf("roots %v, %v; want %s", roots, err, h)
	}
	if _, err := gc.KeptRoots(s, []gitfmt.ID{"1234567"}); err == nil {
		t.Error("a short id is accepted")
	}
}
