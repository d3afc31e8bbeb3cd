package diff_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
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
		world{
			"same": "1", "text": "old", "gone": "1", "type": "file", "d/was": "1", "left/": "", "left-behind/f": "1",
			"swap/f": "1", "paws": "1",
		},
		world{
			"same": "1", "text": "new", "type": "->file", "made": "1", "new/f": "1", "empty/": "",
			"left-behind/f": "1", "swap": "1", "paws/f": "1",
		})
	want := "d/was=deleted empty/=added gone=deleted left/=deleted made=added new/f=added paws=type paws/f=added swap=type swap/f=deleted text=modified type=type"
	if got := inWords(changes); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	s := newStore(t)
	from := world{"run": "same"}.listing(t, s)
	to := tree.NewListing(
		[]tree.Entry{{Path: "run", State: tree.State{Kind: tree.KindFile, Perm: 0o600, Hash: from.At("run").Hash}}})
	changes = diff.Between(from, to)
	if len(changes) != 1 || changes[0].Kind != diff.Mode || changes[0].Old.Mode != "0644" ||
		changes[0].New.Mode != "0600" {
		t.Errorf("other permissions: %+v", changes)
	}
}

// TestRenames pairs the most similar, by name where that is equal.
func TestRenames(t *testing.T) {
	text := strings.Repeat("the same line\n", 20)
	s, changes := between(t,
		world{
			"x/same": "twin", "x/xonly": text + "x", "y/same": "twin", "y/yonly": text + "y", "link": "->target",
			"gone": "nothing like it", "p/alpha": "twins", "p/beta": "twins",
		},
		world{
			"newx/same": "twin", "newx/xonly": text + text[:40] + "x", "newy/same": "twin",
			"newy/yonly": text + text[:40] + "y", "moved": "->target", "q/beta": "twins", "r/alpha": "twins",
		})
	out, err := diff.Renames(t.Context(), s, changes)
	want := "gone=deleted moved<link newx/same<x/same newx/xonly<x/xonly newy/same<y/same newy/yonly<y/yonly q/beta<p/beta r/alpha<p/alpha"
	if got := inWords(out); got != want || err != nil {
		t.Errorf("%v\n%s\nwant %s", err, got, want)
	}
}

// TestSimilar: half of the bytes are enough, and of several pairs the best is made: by similarity, name and order.
func TestSimilar(t *testing.T) {
	lines := func(of string) string { return strings.Join(strings.Split(of, ""), "xxxx\n") + "xxxx\n" }
	for _, tt := range []struct {
		name string
		a, b world
		want string
	}{
		{"half", world{"o": lines("abcd")}, world{"n": lines("abef")}, "n<o"},
		{"less", world{"o": lines("abcd")}, world{"n": lines("aefg")}, "n=added o=deleted"},
		{"half as long", world{"o": lines("ab")}, world{"n": lines("abcd")}, "n<o"},
		{"the same letters", world{"o": "abcdefgh\n"}, world{"n": "hgfedcba\n"}, "n=added o=deleted"},
		{"a better one", world{"o1": lines("abcwx"), "o2": lines("abcdw"), "o3": lines("abcyz")}, world{"n": lines("abcde")}, "n<o2 o1=deleted o3=deleted"},
		{"a name", world{"x/k": lines("abcx"), "y/m": lines("abcy")}, world{"z/m": lines("abcz")}, "x/k=deleted z/m<y/m"},
		{"a name, the other way", world{"x/m": lines("abcx"), "y/k": lines("abcy")}, world{"z/m": lines("abcz")}, "y/k=deleted z/m<x/m"},
		{"two new ones", world{"o": lines("abcx")}, world{"n1": lines("abcy"), "n2": lines("abcz")}, "n1<o n2=added"},
		{"two old ones", world{"o1": lines("abcx"), "o2": lines("abcy")}, world{"n": lines("abcz")}, "n<o1 o2=deleted"},
		{"empty files", world{"o": "", "p": "x"}, world{"n1": "", "n2": ""}, "n1<o n2=added p=deleted"},
		{"empty directories", world{"o/": ""}, world{"n/": ""}, "n/=added o/=deleted"},
		{"a link and a file", world{"o": "->x"}, world{"n": "x"}, "n=added o=deleted"},
	} {
		s, changes := between(t, tt.a, tt.b)
		out, err := diff.Renames(t.Context(), s, changes)
		if got := inWords(out); got != tt.want || err != nil {
			t.Errorf("%s: %s, %v, want %s", tt.name, got, err, tt.want)
		}
	}
	for _, end := range []string{"o", "n"} { // a secret's copy is one, too
		s, changes := between(t, world{"o": "x"}, world{"n": "x"})
		for i := range changes {
			changes[i].Secret = changes[i].Path == end
		}
		if out, err := diff.Renames(t.Context(), s, changes); err != nil || len(out) != 1 || !out[0].Secret ||
			out[0].Similarity != 100 {
			t.Errorf("%+v, %v", out, err)
		}
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

// TestPatchText: each kind of change as git prints it, with ids as "#".
func TestPatchText(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	for _, tt := range []struct {
		name string
		a, b world
		want string
	}{
		{"content", world{"x": "one\n"}, world{"x": "two\n"},
			"diff --git a/x b/x\nindex #..# 100644\n--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-one\n+two\n"},
		{"mode and content", world{"x": "one\n"}, world{"x": "#!one\n"},
			"diff --git a/x b/x\nold mode 100644\nnew mode 100755\nindex #..#\n--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-one\n+#!one\n"},
		{"an executable", world{"x": "#!a\n"}, world{}, "diff --git a/x b/x\ndeleted file mode 100755\nindex #..0\n--- a/x\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-#!a\n"},
		{"an empty file comes", world{}, world{"x": ""}, "diff --git a/x b/x\nnew file mode 100644\nindex 0..#\n"},
		{"an empty file goes", world{"x": ""}, world{}, "diff --git a/x b/x\ndeleted file mode 100644\nindex #..0\n"},
		{"emptied", world{"x": "one\n"}, world{"x": ""}, "diff --git a/x b/x\nindex #..# 100644\n--- a/x\n+++ b/x\n@@ -1,1 +0,0 @@\n-one\n"},
		{"filled", world{"x": ""}, world{"x": "one\n"}, "diff --git a/x b/x\nindex #..# 100644\n--- a/x\n+++ b/x\n@@ -0,0 +1,1 @@\n+one\n"},
		{"a link", world{"x": "->a"}, world{"x": "->b"}, "diff --git a/x b/x\nindex #..# 120000\n--- a/x\n+++ b/x\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"},
		{"bytes come", world{}, world{"x": "\x00"}, "diff --git a/x b/x\nnew file mode 100644\nindex 0..#\nBinary files /dev/null and b/x differ\n"},
		{"bytes go", world{"x": "\x00"}, world{"x": "a"}, "diff --git a/x b/x\nindex #..# 100644\nBinary files a/x and b/x differ\n"},
		{"a large file", world{}, world{"x": big + "x"}, "diff --git a/x b/x\nnew file mode 100644\nindex 0..#\nBinary files /dev/null and b/x differ\n"},
		{"one not too large", world{}, world{"x": big}, "diff --git a/x b/x\nnew file mode 100644\nindex 0..#\n--- /dev/null\n+++ b/x\n@@ -0,0 +1,1 @@\n+" + big + "\n\\ No newline at end of file\n"},
		{"an empty directory", world{}, world{"d/": ""}, ""},
		{"moved", world{"x": "one\n"}, world{"y": "one\n"}, "diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n"},
		{"moved and edited", world{"x": "a\nb\nc\n"}, world{"y": "a\nb\nd\n"},
			"diff --git a/x b/y\nsimilarity index 66%\nrename from x\nrename to y\nindex #..# 100644\n--- a/x\n+++ b/y\n@@ -1,3 +1,3 @@\n a\n b\n-c\n+d\n"},
		{"odd names", world{}, world{"\a\"\x1f \x7e\x7fé": ""}, `diff --git "a/\a\"\037 ~\177\303\251" "b/\a\"\037 ~\177\303\251"` + "\nnew file mode 100644\nindex 0..#\n"},
	} {
		s, changes := between(t, tt.a, tt.b)
		changes, err := diff.Renames(t.Context(), s, changes)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := diff.Patch(t.Context(), s, &out, changes); err != nil {
			t.Fatal(err)
		}
		got := regexp.MustCompile(`[0-9a-f]{40}`).ReplaceAllString(strings.ReplaceAll(out.String(), strings.Repeat("0", 40), "0"), "#")
		if got != tt.want {
			t.Errorf("%s: %.400q, want %.400q", tt.name, got, tt.want)
		}
	}
}

// writes are as many writes as succeed.
type writes int

func (w *writes) Write(p []byte) (int, error) {
	if *w--; *w < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

// TestPatchFails: what cannot be read or written is an error, but for the bytes of a secret, which are not read.
func TestPatchFails(t *testing.T) {
	s, changes := between(t, world{"x": "one\n"}, world{"x": "two\n"})
	for n := range 2 {
		if w := writes(n); !errors.Is(diff.Patch(t.Context(), s, &w, changes), io.ErrShortWrite) {
			t.Errorf("no error after %d writes", n)
		}
	}
	for blob, want := range map[string]string{"zz": "bad blob id", strings.Repeat("1", 40): "x"} {
		c := diff.Change{Path: "x", Kind: diff.Added, New: &diff.Side{Type: "file", Mode: "0644", Blob: blob}}
		if err := diff.Patch(t.Context(), s, io.Discard, []diff.Change{c}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", blob, err)
		}
		c.Secret = true
		if err := diff.Patch(t.Context(), s, io.Discard, []diff.Change{c}); err != nil {
			t.Errorf("a secret: %v", err)
		}
	}
}
