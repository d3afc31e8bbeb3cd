package tree_test

import (
	"errors"
	"testing"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// TestPolicy: a snapshot's rules are those of its commit and of the .gitignore files in its tree.
func TestPolicy(t *testing.T) {
	t.Parallel()
	rules := func(text string) []ignore.Pattern { return ignore.Parse("", "", []byte(text)).Patterns }
	c := &gitfmt.Commit{Rules: []gitfmt.FrozenRule{
		{Up: "up", Patterns: rules("/up/above\n")},
		{Base: "nested", Patterns: rules("frozen\n")},
	}}
	text := map[string]string{".gitignore": "*.o\nbuild/\n!keep.o\n", "d/.gitignore": "!*.o\nhere\n",
		"nested/.gitignore": "tree\n"}
	var entries []tree.Entry
	for _, d := range []string{"d", "nested"} {
		entries = append(entries, tree.Entry{Path: d, State: tree.State{Kind: tree.KindDir, Perm: 0o755}})
	}
	for path := range text {
		entries = append(entries, tree.Entry{Path: path, State: tree.State{Kind: tree.KindFile, Perm: 0o644}})
	}
	l := tree.NewListing(entries)
	p, err := tree.LoadPolicy(c, l, func(path string, _ tree.State) ([]byte, error) { return []byte(text[path]), nil })
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path  string
		isDir bool
		want  bool
	}{
		{"a", false, false}, {"a.o", false, true}, {"keep.o", false, false}, {"x/a.o", false, true},
		{"build", true, true}, {"build", false, false}, {"build/keep.o", false, true},
		{"d/a.o", false, false}, {"d/here", false, true}, {"here", false, false}, {"d/e/here", false, true},
		{"above", false, true}, {"d/above", false, false},
		{".git", true, true}, {"d/.git/HEAD", false, true}, {".anamnesis/x", false, true}, {"x.git", true, false},
		{"nested/frozen", false, true}, {"nested/tree", false, false},
	} {
		if got := p.Ignored(c.path, c.isDir); got != c.want {
			t.Errorf("%s, a directory: %t: ignored %t, want %t", c.path, c.isDir, got, c.want)
		}
	}
	broken := errors.New("the store is damaged")
	if _, err := tree.LoadPolicy(c, l, func(string, tree.State) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("rules that cannot be read: %v", err)
	}
}
