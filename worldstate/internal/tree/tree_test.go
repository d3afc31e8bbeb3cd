package tree_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// drawNode draws a directory: usual and unusual modes, links, empty directories, and names that git
// refuses.
func drawNode(t *rapid.T, path string, depth int) *tree.Node {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
		"a", "a-b", "a.b", "b", "git~1", ".gitmodules", `x\y`, "\xff", tree.ManifestName, tree.StoredPrefix + "a",
	}), 0, 5, rapid.ID[string]).Draw(t, "names in "+path)
	slices.Sort(names)
	var items []tree.Item
	for _, name := range names {
		it := tree.Item{Name: name}
		kind := rapid.SampledFrom(
			[]tree.Kind{tree.KindFile, tree.KindFile, tree.KindLink, tree.KindDir, tree.KindDir}).Draw(t, "kind")
		if kind == tree.KindDir && depth == 3 {
			kind = tree.KindFile
		}
		it.Kind = kind
		if kind != tree.KindDir {
			it.Hash = gitfmt.Hash{byte(1 + rapid.IntRange(0, 3).Draw(t, "content"))}
		}
		if kind != tree.KindLink {
			it.Perm = rapid.SampledFrom([]uint32{0o644, 0o755, 0o755, 0o600, 0o700, 0o555}).Draw(t, "mode")
		}
		if tree.HostileName(path, name, it.State, 0) {
			it.Stored = tree.StoredName(name)
		}
		if kind == tree.KindDir {
			it.Sub = drawNode(t, fsys.Join(path, name), depth+1)
		}
		items = append(items, it)
	}
	return tree.Seal(items, nil)
}

// drawListing draws a listing.
func drawListing(t *rapid.T) *tree.Listing { return &tree.Listing{Root: drawNode(t, "", 0)} }

// drawChanged draws a listing that differs from another in at most three entries.
func drawChanged(t *rapid.T, l *tree.Listing) *tree.Listing {
	var entries []tree.Entry
	for e := range l.All() {
		entries = append(entries, *e)
	}
	for range rapid.IntRange(0, 3).Draw(t, "changes") {
		if len(entries) == 0 {
			break
		}
		i := rapid.IntRange(0, len(entries)-1).Draw(t, "changed")
		switch e := &entries[i]; {
		case e.Kind == tree.KindLink:
			e.Hash = gitfmt.Hash{9}
		case rapid.Bool().Draw(t, "mode"):
			e.Perm = rapid.SampledFrom([]uint32{0o644, 0o755, 0o600, 0o700, 0o711}).Draw(t, "new mode")
		case e.IsDir():
			made := tree.State{Kind: tree.KindDir, Perm: 0o755}
			entries = append(entries, tree.Entry{Path: e.Path + "/made", State: made})
		default:
			entries = slices.Delete(entries, i, i+1)
		}
	}
	return tree.NewListing(entries)
}

// states returns a listing as a map.
func states(l *tree.Listing) map[string]tree.State {
	out := map[string]tree.State{}
	for e := range l.All() {
		out[e.Path] = e.State
	}
	return out
}

func newStore(t *testing.T) *objects.Store {
	t.Helper()
	s := objects.New(t.TempDir())
	if err := os.MkdirAll(s.PackDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// save stores a listing's trees.
func save(t rapid.TB, s *objects.Store, l *tree.Listing) gitfmt.Hash {
	t.Helper()
	w := objects.NewWriter(s.PackDir(), func(string) {}, &objects.Pool{})
	defer w.Abort()
	id, err := tree.Build(l, w.Add)
	if err == nil {
		err = s.Publish(w, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestBuildLoad: a listing is the same after it was stored and read, with or without another
// listing to share directories with, and so is its id.
func TestBuildLoad(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	rapid.Check(t, func(t *rapid.T) {
		first := drawListing(t)
		var like *tree.Listing
		for _, l := range []*tree.Listing{first, drawChanged(t, first)} {
			id := save(t, s, l)
			if id != tree.ID(l) {
				t.Fatalf("built as %s, its id is %s", id, tree.ID(l))
			}
			back, err := tree.Load(s, id, like)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := states(back), states(l); !maps.Equal(got, want) {
				t.Fatalf("read   %v\nstored %v", got, want)
			}
			if again := tree.ID(back); again != id {
				t.Fatalf("read, its id is %s, was %s", again, id)
			}
			like = back
		}
	})
}

// TestUnion: every path that differs is reported once, sorted, with both states.
func TestUnion(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := drawListing(t)
		b := drawChanged(t, a)
		if rapid.Bool().Draw(t, "unrelated") {
			b = drawListing(t)
		}
		as, bs := states(a), states(b)
		var paths []string
		tree.Union(a, b, func(path string, sa, sb tree.State) {
			if sa != as[path] || sb != bs[path] {
				t.Fatalf("%q: %s and %s, want %s and %s", path, sa, sb, as[path], bs[path])
			}
			paths = append(paths, path)
		})
		if !slices.IsSorted(paths) || len(slices.Compact(slices.Clone(paths))) != len(paths) {
			t.Fatalf("not sorted, or twice: %q", paths)
		}
		var changed []string
		for path := range union(as, bs) {
			sa, sb := as[path], bs[path]
			if sa != sb && !slices.Contains(paths, path) {
				t.Fatalf("%q differs and is not reported", path)
			}
			bothDirs := (sa.IsDir() || sa.Absent()) && (sb.IsDir() || sb.Absent())
			if sa != sb && !bothDirs {
				changed = append(changed, path)
			}
		}
		slices.Sort(changed)
		if got := tree.ChangedPaths(a, b); !slices.Equal(got, changed) {
			t.Fatalf("changed paths %q, want %q", got, changed)
		}
	})
}

func union(a, b map[string]tree.State) map[string]tree.State {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// TestNewListing: a listing made of its entries, in any order, is the same, and a path is found
// exactly if it is there.
func TestNewListing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := drawListing(t)
		var entries []tree.Entry
		files := 0
		for e := range l.All() {
			entries = append(entries, *e)
			if !e.IsDir() {
				files++
			}
		}
		back := tree.NewListing(rapid.Permutation(entries).Draw(t, "order"))
		if !maps.Equal(states(back), states(l)) || tree.ID(back) != tree.ID(l) || back.Files() != files ||
			back.Empty() != (len(entries) == 0) {
			t.Fatalf("made of its entries: %v, was %v", states(back), states(l))
		}
		for path, want := range states(l) {
			if e := l.Find(path); e == nil || e.State != want || l.At(path) != want {
				t.Fatalf("%q is not found", path)
			}
			for _, other := range []string{path + "x", path + "/nothing"} {
				if _, there := states(l)[other]; !there && (l.Find(other) != nil || !l.At(other).Absent()) {
					t.Fatalf("%q is found", other)
				}
			}
		}
	})
	orphan := []tree.Entry{{Path: "d/f", State: tree.State{Kind: tree.KindFile, Perm: 0o644}}}
	if l := tree.NewListing(orphan); !l.Empty() {
		t.Errorf("a file without its directory: %v", states(l))
	}
}

// TestAlikeDirectories: directories with one git tree differ by what only the manifest says. They
// are neither skipped in a comparison nor shared when a listing is read.
func TestAlikeDirectories(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	file := func(path string, perm uint32) tree.Entry {
		return tree.Entry{Path: path, State: tree.State{Kind: tree.KindFile, Perm: perm, Hash: gitfmt.Hash{1}}}
	}
	dir := func(path string) tree.Entry {
		return tree.Entry{Path: path, State: tree.State{Kind: tree.KindDir, Perm: 0o755}}
	}
	for name, pair := range map[string][2][]tree.Entry{
		"a mode":              {{dir("d"), file("d/a", 0o644), file("x", 0o644)}, {dir("d"), file("d/a", 0o600), file("x", 0o644), file("y", 0o644)}},
		"modes exchanged":     {{dir("d"), file("d/a", 0o600), file("d/b", 0o644)}, {dir("d"), file("d/a", 0o644), file("d/b", 0o600)}},
		"an empty directory":  {{dir("d"), file("d/a", 0o644), dir("d/e")}, {dir("d"), file("d/a", 0o644), dir("d/f")}},
		"other usual modes":   {{dir("d"), file("d/a", 0o644), file("x", 0o600), file("y", 0o600)}, {dir("d"), file("d/a", 0o600), file("x", 0o600), file("y", 0o600)}},
		"usual modes changed": {{dir("d"), file("d/a", 0o644)}, {dir("d"), file("d/a", 0o600)}},
	} {
		a, b := tree.NewListing(pair[0]), tree.NewListing(pair[1])
		for _, order := range [][2]*tree.Listing{{a, b}, {b, a}} {
			var paths []string
			tree.Union(order[0], order[1], func(path string, sa, sb tree.State) {
				if sa != sb && strings.HasPrefix(path, "d/") {
					paths = append(paths, path)
				}
			})
			if len(paths) == 0 {
				t.Errorf("%s: no difference is reported", name)
			}
			like, err := tree.Load(s, save(t, s, order[0]), nil)
			if err != nil {
				t.Fatal(err)
			}
			back, err := tree.Load(s, save(t, s, order[1]), like)
			if err != nil || !maps.Equal(states(back), states(order[1])) {
				t.Errorf("%s: read %v, %v, want %v", name, states(back), err, states(order[1]))
			}
		}
	}
}

// TestManifest: the manifest names the most frequent mode of each class, the smaller one of two
// that are equally frequent, and what differs from it. It decides the ids of worlds for ever.
func TestManifest(t *testing.T) {
	t.Parallel()
	file := func(path string, perm uint32) tree.Entry {
		return tree.Entry{Path: path, State: tree.State{Kind: tree.KindFile, Perm: perm, Hash: gitfmt.Hash{1}}}
	}
	dir := func(path string, perm uint32) tree.Entry {
		return tree.Entry{Path: path, State: tree.State{Kind: tree.KindDir, Perm: perm}}
	}
	const head = "anamnesis-manifest 1 "
	for want, entries := range map[string][]tree.Entry{
		"": {file("a", 0o644), file("b", 0o755), dir("d", 0o755), file("d/x", 0o644)},
		head + "file=0600 exec=0755 dir=0755\nmode 0644 \"b\"\n": {file("a", 0o600),
			file("b", 0o644)},
		head + "file=0644 exec=0700 dir=0700\n": {file("a", 0o700),
			dir("d", 0o700), file("d/x", 0o700)},
		head + "file=0644 exec=0755 dir=0755\nempty 0755 \"d/e\"\nmode 0600 \"b\\n\"\n": {
			file("a", 0o644), file("a2", 0o644), file("b\n", 0o600), dir("d", 0o755), dir("d/e", 0o755),
			file("d/x", 0o644),
		},
	} {
		if _, _, text := tree.Root(tree.NewListing(entries)); string(text) != want {
			t.Errorf("got  %q\nwant %q", text, want)
		}
	}
}

// TestLoadRefuses: a tree that no save could have written is corruption.
func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	put := func(kind gitfmt.ObjectType, data []byte) gitfmt.Hash {
		w := objects.NewWriter(s.PackDir(), func(string) {}, &objects.Pool{})
		defer w.Abort()
		h := gitfmt.HashObject(kind, data)
		if err := errors.Join(w.Add(h, kind, data), s.Publish(w, 0)); err != nil {
			t.Fatal(err)
		}
		return h
	}
	blob := put(gitfmt.BlobObject, []byte("text"))
	manifest := func(lines string) gitfmt.TreeItem {
		text := "anamnesis-manifest 1 file=0644 exec=0755 dir=0755\n" + lines
		return gitfmt.TreeItem{Mode: "100644", Name: tree.ManifestName, Hash: put(gitfmt.BlobObject, []byte(text))}
	}
	file := func(name string) gitfmt.TreeItem { return gitfmt.TreeItem{Mode: "100644", Name: name, Hash: blob} }
	for name, items := range map[string][]gitfmt.TreeItem{
		"a submodule":                         {{Mode: gitfmt.GitlinkMode, Name: "a", Hash: blob}},
		"an unknown word in the manifest":     {manifest("owner 0 \"a\"\n"), file("a")},
		"a later version of the manifest":     {{Mode: "100644", Name: tree.ManifestName, Hash: put(gitfmt.BlobObject, []byte("anamnesis-manifest 2\n"))}},
		"a manifest that is cut":              {manifest("mode 0600 \"a\""), file("a")},
		"a mode twice":                        {manifest("mode 0600 \"a\"\nmode 0600 \"a\"\n"), file("a")},
		"a mode with special bits":            {manifest("mode 4755 \"a\"\n"), file("a")},
		"a path outside":                      {manifest("mode 0600 \"../a\"\n"), file("a")},
		"an empty directory without a parent": {manifest("empty 0755 \"d/e\"\n"), file("a")},
		"an empty directory that is a file":   {manifest("empty 0755 \"a\"\n"), file("a")},
		"a true name that is there, too":      {manifest(fmt.Sprintf("name %q \"b\"\n", tree.StoredPrefix+"x")), file(tree.StoredPrefix + "x"), file("b")},
	} {
		if _, err := tree.Load(s, put(gitfmt.TreeObject, gitfmt.EncodeTree(items, 0)), nil); !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("%s: %v, want ErrCorrupt", name, err)
		}
	}
	var missing *gitfmt.MissingObjectError
	if _, err := tree.Load(s, gitfmt.Hash{9}, nil); !errors.As(err, &missing) {
		t.Errorf("a missing tree: %v", err)
	}
}

func TestHostileName(t *testing.T) {
	t.Parallel()
	file, link := tree.State{Kind: tree.KindFile}, tree.State{Kind: tree.KindLink}
	for _, c := range []struct {
		parent, name string
		s            tree.State
		size         int64
		want         bool
	}{
		{"", "a", file, 0, false},
		{"", ".github", file, 0, false},
		{"", ".gitkeep", file, 0, false},
		{"", ".GIT", file, 0, true},
		{"", ".git ", file, 0, true},
		{"", ".git.x", file, 0, true},
		{"", ".git::$INDEX_ALLOCATION", file, 0, true},
		{"", ".g\u200cit", file, 0, true},
		{"", "git~1", file, 0, true},
		{"", "GI7EBA~1", file, 0, true},
		{"", "maba30~1", file, 0, true},
		{"", "other~1", file, 0, false},
		{"", "gigantic-name~1", file, 0, false},
		{"", ".gitmodules", file, 0, true},
		{"", ".gitattributes", file, 10, false},
		{"", ".gitattributes", file, 5000, true},
		{"", ".gitattributes", link, 0, true},
		{"", ".Gitattributes", file, 0, true},
		{"", ".gitignore", file, 0, false},
		{"", ".gitignore", link, 0, true},
		{"", ".mailmap", link, 0, true},
		{"", `a\b`, file, 0, true},
		{"", tree.ManifestName, file, 0, true},
		{"d", tree.ManifestName, file, 0, false},
		{"d", tree.StoredPrefix + "a", file, 0, true},
	} {
		if got := tree.HostileName(c.parent, c.name, c.s, c.size); got != c.want {
			t.Errorf("%q in %q: %t, want %t", c.name, c.parent, got, c.want)
		}
	}
	for name, want := range map[string]string{
		"git~1 ü": "git%7e1%20%c3%bc", "azAZ09.-_": "azAZ09.-_", "`{@[/:,%": "%60%7b%40%5b%2f%3a%2c%25",
	} {
		if got := tree.StoredName(name); got != tree.StoredPrefix+want {
			t.Errorf("stored as %q, want %q", got, want)
		}
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", tree.MaxDepth-1) + "f"
	long := strings.Repeat(strings.Repeat("x", 191)+"/", 20) // 3,840 bytes
	for path, want := range map[string]bool{
		"f": true, deep: true, "d/" + deep: false,
		long[:tree.MaxPathBytes-tree.MaxNameBytes-1] + "/f":  true,
		long[:tree.MaxPathBytes-tree.MaxNameBytes-1] + "x/f": false,
	} {
		if got := tree.Fits(path); got != want {
			t.Errorf("a path of %d bytes and %d directories: %t", len(path), strings.Count(path, "/"), got)
		}
	}
}
