package worldstate_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/worldstate"
	"anamnesis/worldstate/worldtest"
)

// TestAlternate: the store of an early version, whose first save left the blobs in the user's
// repository, is read, and the next save stores the blobs of all present files.
func TestAlternate(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), filepath.Join(t.TempDir(), "store")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) { must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)) }
	open := func() *worldstate.World {
		w, err := worldstate.Open(dir, store, nil)
		must(err)
		return w
	}
	write("same", "stays as it is\n")
	write("changed", "before\n")
	worldtest.Git(t, dir, "init", "-q")
	worldtest.Git(t, dir, "add", "-A")
	worldtest.Git(t, dir, "commit", "-q", "-m", "all")
	worldtest.Git(t, dir, "repack", "-adq")
	w := open()
	first, err := w.SaveNext(t.Context(), "first")
	must(err)
	must(w.Close())

	// As the early version left it: a pack without the blobs, and the repository's path.
	packs, err := filepath.Glob(filepath.Join(store, "objects", "pack", "pack-*"))
	must(err)
	var kept strings.Builder
	for line := range strings.SplitSeq(worldtest.Git(t, store, "cat-file", "--batch-all-objects", "--batch-check"), "\n") {
		if f := strings.Fields(line); len(f) == 3 && f[1] != "blob" {
			kept.WriteString(f[0] + "\n")
		}
	}
	pack := exec.Command("git", "-C", store, "pack-objects", "-q", "objects/pack/pack")
	pack.Stdin = strings.NewReader(kept.String())
	name, err := pack.Output()
	must(err)
	must(os.WriteFile(filepath.Join(store, "objects", "pack", "pack-"+strings.TrimSpace(string(name))+".keep"),
		[]byte("anamnesis"), 0o644))
	for _, p := range packs {
		must(os.Remove(p))
	}
	must(os.WriteFile(filepath.Join(store, "objects", "info", "alternates"),
		[]byte(filepath.Join(dir, ".git", "objects")+"\n"), 0o644))

	w = open()
	must(w.Has(t.Context(), first.ID))
	write("changed", "after\n")
	second, err := w.SaveNext(t.Context(), "second")
	must(err)
	must(w.Close())
	must(os.RemoveAll(filepath.Join(dir, ".git")))
	w = open()
	defer w.Close()
	must(w.Has(t.Context(), second.ID))
	if err := w.Has(t.Context(), first.ID); err == nil {
		t.Error("the first snapshot is whole without the user's repository: the test shows nothing")
	}
}
