package history_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/refs"
)

// graph is a store with objects that have names.
type graph struct {
	*testing.T
	s     *objects.Store
	ids   map[string]gitfmt.Hash
	names map[gitfmt.Hash]string
}

func newGraph(t *testing.T) *graph {
	t.Helper()
	g := &graph{T: t, s: objects.New(t.TempDir()), ids: make(map[string]gitfmt.Hash),
		names: make(map[gitfmt.Hash]string)}
	t.Cleanup(func() { g.s.Close() })
	if err := os.MkdirAll(g.s.PackDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	return g
}

// put names an object, and stores it unless it is lost.
func (g *graph) put(name string, kind gitfmt.ObjectType, data []byte, lost bool) {
	g.Helper()
	h := gitfmt.HashObject(kind, data)
	g.ids[name], g.names[h] = h, name
	if lost {
		return
	}
	w := objects.NewWriter(g.s.PackDir(), func(string) {}, &objects.Pool{})
	defer w.Abort()
	if err := errors.Join(w.Add(h, kind, data), g.s.Publish(w, 0)); err != nil {
		g.Fatal(err)
	}
}

// commit makes a snapshot of a step of task t that has the number of seconds as its time.
func (g *graph) commit(name string, seconds int64, lost bool, parents ...string) {
	g.Helper()
	c := gitfmt.Commit{Tree: gitfmt.Hash{1}, Time: time.Unix(seconds, 0), Message: name, World: "w", Step: "t@" + name}
	for _, p := range parents {
		c.Parents = append(c.Parents, g.ids[p])
	}
	g.put(name, gitfmt.CommitObject, c.Encode(), lost)
}

// TestLog: children come before parents whatever their clocks said, otherwise the newest comes first.
func TestLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		lost  string // a commit that cannot be read, shown as "lost?"
		heads string
		want  string
	}{
		{"nothing", "", "", ""},
		{"one", "", "root", "root"},
		{"a line", "", "late", "late root"},
		{"a clock that went back", "", "early", "early root"},
		{"two heads", "", "late early", "late early root"},
		{"a merge", "", "merge", "merge late early root"},
		{"a head twice", "", "merge late root", "merge late early root"},
		// What a lost commit came from is found by steps in packs, whether or not they are ancestors.
		{"a lost head", "late", "late root", "merge early root late?"},
		{"a lost commit", "late", "merge root", "merge early root late?"},
	} {
		g := newGraph(t)
		g.commit("root", 100, tt.lost == "root")
		g.commit("early", 50, false, "root")
		g.commit("late", 200, tt.lost == "late", "root")
		g.commit("merge", 60, false, "early", "late")
		byName := map[string]gitfmt.Hash{refs.WorldPrefix + "other": g.ids["merge"], "refs/tags/gone": {1}}
		for head := range strings.FieldsSeq(tt.heads) {
			byName[refs.OfStep("t@"+head)] = g.ids[head]
		}
		list, err := history.Log(t.Context(), g.s, byName,
			func(ref string) bool { return !strings.HasPrefix(ref, refs.WorldPrefix) })
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var got []string
		for _, c := range list {
			name := g.names[c.Id]
			if c.Missing != nil {
				name += "?"
			}
			got = append(got, name)
		}
		if list := strings.Join(got, " "); list != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, list, tt.want)
		}
	}
}

// TestLogFindsAncestors: where a commit is lost, what came before it is found by its step.
func TestLogFindsAncestors(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	g.put("file", gitfmt.BlobObject, []byte("text"), false)
	g.commit("1", 100, false)
	g.commit("2", 200, false, "1")
	g.commit("3", 300, true, "2")
	g.commit("4", 400, false, "3")
	plain := gitfmt.Commit{Tree: gitfmt.Hash{1}, Time: time.Unix(500, 0), Message: "of no step"}
	g.put("plain", gitfmt.CommitObject, plain.Encode(), false)
	byName := map[string]gitfmt.Hash{refs.TaskPrefix + "t/4": g.ids["4"]}
	for _, chosen := range []string{"1 2 4", "4"} {
		list, err := history.Log(t.Context(), g.s, byName,
			func(ref string) bool { return strings.Contains(chosen, refs.Step(ref)[len("t@"):]) })
		var got []string
		for _, c := range list {
			got = append(got, g.names[c.Id])
		}
		want := "4 2 1 3"
		if chosen == "4" {
			want = "4 3"
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %q, %v; want %s", chosen, got, err, want)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := history.Log(ended, g.s, byName, func(string) bool { return true }); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestWalk: a tree comes before what is in it; what is not entered, and submodules, are not visited.
func TestWalk(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	tree := func(name string, lost bool, items ...gitfmt.TreeItem) {
		g.put(name, gitfmt.TreeObject, gitfmt.EncodeTree(items, 0), lost)
	}
	item := func(mode, name string) gitfmt.TreeItem {
		return gitfmt.TreeItem{Mode: mode, Name: name, Hash: g.ids[name]}
	}
	g.put("f", gitfmt.BlobObject, []byte("f"), true) // a walk reads no files
	tree("deep", false, item("120000", "f"))
	tree("sub", false, item(gitfmt.TreeMode, "deep"), item("100755", "f"))
	tree("lost", true, item("100644", "f"))
	tree("whole", false, item("100644", "f"),
		gitfmt.TreeItem{Mode: gitfmt.GitlinkMode, Name: "module", Hash: gitfmt.Hash{1}}, item(gitfmt.TreeMode, "sub"))
	tree("holed", false, item(gitfmt.TreeMode, "lost"), item(gitfmt.TreeMode, "sub"))
	for _, tt := range []struct {
		name, top, skip string
		failed          bool // a lost tree does not end the walk
		want            string
		lost            bool
	}{
		{"all", "whole", "", false, "t: f:f t:sub t:sub/deep f:sub/deep/f f:sub/f", false},
		{"not entered", "whole", "sub", false, "t: f:f", false},
		{"nothing entered", "whole", "whole", false, "", false},
		{"a lost tree", "holed", "", false, "t:", true},
		{"a lost tree that may be", "holed", "", true, "t: lost:lost t:sub t:sub/deep f:sub/deep/f f:sub/f", false},
	} {
		var got []string
		v := history.Visitor{
			Enter: func(h gitfmt.Hash) bool { return g.names[h] != tt.skip },
			Tree:  func(_ gitfmt.Hash, path string) { got = append(got, "t:"+path) },
			Blob:  func(_ gitfmt.Hash, path string) error { got = append(got, "f:"+path); return nil },
		}
		if tt.failed {
			v.Failed = func(_ gitfmt.Hash, path string, _ error) error { got = append(got, "lost:"+path); return nil }
		}
		err := history.Walk(t.Context(), g.s, g.ids[tt.top], v)
		if strings.Join(got, " ") != tt.want || errors.Is(err, gitfmt.ErrCorrupt) != tt.lost ||
			(err != nil) != tt.lost {
			t.Errorf("%s: %q, %v; want %s", tt.name, got, err, tt.want)
		}
	}
	stop := errors.New("stop")
	if err := history.Walk(t.Context(), g.s, g.ids["whole"], history.Visitor{
		Enter: func(gitfmt.Hash) bool { return true },
		Blob:  func(gitfmt.Hash, string) error { return stop },
	}); !errors.Is(err, stop) {
		t.Errorf("a file that ends the walk: %v", err)
	}
}

// TestWalkDepth: trees nest as deep as the limit says, and no deeper.
func TestWalkDepth(t *testing.T) {
	t.Parallel()
	g := newGraph(t)
	w := objects.NewWriter(g.s.PackDir(), func(string) {}, &objects.Pool{})
	defer w.Abort()
	var trees []gitfmt.Hash
	for n := range gitfmt.MaxTreeDepth + 2 {
		var items []gitfmt.TreeItem
		if n > 0 {
			items = []gitfmt.TreeItem{{Mode: gitfmt.TreeMode, Name: "d", Hash: trees[n-1]}}
		}
		data := gitfmt.EncodeTree(items, 0)
		trees = append(trees, gitfmt.HashObject(gitfmt.TreeObject, data))
		if err := w.Add(trees[n], gitfmt.TreeObject, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.s.Publish(w, 0); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{gitfmt.MaxTreeDepth: true, gitfmt.MaxTreeDepth + 1: false} {
		err := history.Walk(t.Context(), g.s, trees[n], history.Visitor{Enter: func(gitfmt.Hash) bool { return true }})
		if (err == nil) != want || !want && !errors.Is(err, gitfmt.ErrCorrupt) {
			t.Errorf("%d levels: %v", n, err)
		}
	}
}
