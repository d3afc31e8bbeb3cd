package diff_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"anamnesis/worldstate/internal/diff"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// world is a listing that a test describes, with its contents in a store.
type world map[string]string

// listing stores the contents and returns the listing. A path that ends in a slash is an empty
// directory, a text that begins with "->" a link, and one that begins with "#!" executable.
func (w world) listing(t *testing.T, s *objects.Store) *tree.Listing {
	t.Helper()
	pack := objects.NewWriter(s.PackDir(), func(string) {}, &objects.Pool{})
	defer pack.Abort()
	dirs := map[string]bool{}
	var entries []tree.Entry
	for path, text := range w {
		parts := strings.Split(path, "/")
		for i := 1; i < len(parts); i++ {
			dirs[strings.Join(parts[:i], "/")] = true
		}
		if parts[len(parts)-1] == "" {
			continue
		}
		state := tree.State{Kind: tree.KindFile, Perm: 0o644}
		switch target, isLink := strings.CutPrefix(text, "->"); {
		case isLink:
			state, text = tree.State{Kind: tree.KindLink}, target
		case strings.HasPrefix(text, "#!"):
			state.Perm = 0o755
		}
		state.Hash = gitfmt.HashObject(gitfmt.BlobObject, []byte(text))
		if err := pack.Add(state.Hash, gitfmt.BlobObject, []byte(text)); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, tree.Entry{Path: path, State: state})
	}
	for dir := range dirs {
		entries = append(entries, tree.Entry{Path: dir, State: tree.State{Kind: tree.KindDir, Perm: 0o755}})
	}
	if err := s.Publish(pack, 0); err != nil {
		t.Fatal(err)
	}
	return tree.NewListing(entries)
}

func newStore(t *testing.T) *objects.Store {
	t.Helper()
	s := objects.New(t.TempDir())
	t.Cleanup(s.Close)
	if err := os.MkdirAll(s.PackDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

// between returns the store of two worlds and the paths in which they differ.
func between(t *testing.T, a, b world) (*objects.Store, []diff.Change) {
	t.Helper()
	s := newStore(t)
	return s, diff.Between(a.listing(t, s), b.listing(t, s))
}

// inWords returns changes as "path=kind", and renames as "path<from".
func inWords(changes []diff.Change) string {
	var words []string
	for _, c := range changes {
		if c.Kind == diff.Renamed {
			words = append(words, c.Path+"<"+c.From)
		} else {
			words = append(words, fmt.Sprintf("%s=%s", c.Path, c.Kind))
		}
	}
	return strings.Join(words, " ")
}

// TestBetween: every kind of change is named, and a directory only if it is empty or its mode changed.
func TestBetween(t *testing.T) {
	_, changes := between(t,
		world{"same": "1", "text": "old", "gone": "1", "type": "file", "d/was": "1", "left/": "", "left-behind/f": "1"},
		world{"same": "1", "text": "new", "type": "->file", "made": "1", "new/f": "1", "empty/": "", "left-behind/f": "1"})
	want := "d/was=deleted empty/=added gone=deleted left/=deleted made=added new/f=added text=modified type=type"
	if got := inWords(changes); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s := newStore(t)
	from := world{"run": "same"}.listing(t, s)
	to := tree.NewListing([]tree.Entry{{Path: "run", State: tree.State{Kind: tree.KindFile, Perm: 0o600, Hash: from.At("run").Hash}}})
	changes = diff.Between(from, to)
	if len(changes) != 1 || changes[0].Kind != diff.Mode || changes[0].Old.Mode != "0644" || changes[0].New.Mode != "0600" {
		t.Errorf("other permissions: %+v", changes)
	}
}

// TestRenames pairs the most similar, by name where that is equal.
func TestRenames(t *testing.T) {
	text := strings.Repeat("the same line\n", 20)
	s, changes := between(t,
		world{"x/same": "twin", "x/xonly": text + "x", "y/same": "twin", "y/yonly": text + "y", "link": "->target", "gone": "nothing like it", "p/alpha": "twins", "p/beta": "twins"},
		world{"newx/same": "twin", "newx/xonly": text + text[:40] + "x", "newy/same": "twin", "newy/yonly": text + text[:40] + "y", "moved": "->target", "q/beta": "twins", "r/alpha": "twins"})
	out, err := diff.Renames(t.Context(), s, changes)
	want := "gone=deleted moved<link newx/same<x/same newx/xonly<x/xonly newy/same<y/same newy/yonly<y/yonly q/beta<p/beta r/alpha<p/alpha"
	if got := inWords(out); got != want || err != nil {
		t.Errorf("%v\n%s\nwant %s", err, got, want)
	}
}

// TestRenameLimit: of more files than are compared, the rest is paired only by content.
func TestRenameLimit(t *testing.T) {
	a, b := world{}, world{}
	for n := range 1002 {
		a[fmt.Sprintf("old/%d", n)], b[fmt.Sprintf("new/%d", n)] = fmt.Sprint("old", n), fmt.Sprint("new", n)
	}
	text := strings.Repeat("the same line\n", 20)
	a["old/z"], b["new/z"], a["old/zz"], b["new/zz"] = text, text+"x", "twin", "twin"
	s, changes := between(t, a, b)
	out, err := diff.Renames(t.Context(), s, changes)
	if got := inWords(out); strings.Contains(got, "new/z<") || !strings.Contains(got, "new/zz<old/zz") || err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// TestPatch: names are quoted as git quotes them, a change of type is two changes, and neither bytes
// nor secrets are printed.
func TestPatch(t *testing.T) {
	s, changes := between(t,
		world{"a\nb": "one\n", "secret": "password\n", "type": "file\n", "binary": "\x00one"},
		world{"a\nb": "two\n", "secret": "changed\n", "type": "->target", "binary": "\x00two"})
	for i := range changes {
		changes[i].Secret = changes[i].Path == "secret"
	}
	var out strings.Builder
	if err := diff.Patch(t.Context(), s, &out, changes); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`diff --git "a/a\nb" "b/a\nb"`, "-one\n+two\n", "Binary files a/binary and b/binary differ\n",
		"deleted file mode 100644\n", "new file mode 120000\n", "Not shown: an ignored file that snapshots hold for restores only\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "password") || strings.Contains(out.String(), "\x00") {
		t.Errorf("a secret, or bytes, in\n%s", out.String())
	}
}
