package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// tree writes files beneath a new folder.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestInstructionOrder: from the repository's root down; without a repository
// the directory alone.
func TestInstructionOrder(t *testing.T) {
	root := tree(t, map[string]string{
		"AGENTS.md": "outside", "repo/.git/HEAD": "", "repo/AGENTS.md": "top", "repo/CLAUDE.md": "not this",
		"repo/a/CLAUDE.md": "middle", "repo/a/b/AGENTS.md": "leaf\r\n", "repo/a/b/c/README": "", "repo/empty/AGENTS.md": " \n",
	})
	paths := func(in Instructions) string {
		var out []string
		for _, f := range in.Files {
			rel, err := filepath.Rel(root, f.Path)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, rel)
		}
		return strings.Join(out, " ")
	}
	for dir, want := range map[string]string{
		"repo/a/b": "repo/AGENTS.md repo/a/CLAUDE.md repo/a/b/AGENTS.md", "repo/a/b/c": "repo/AGENTS.md repo/a/CLAUDE.md repo/a/b/AGENTS.md",
		"repo": "repo/AGENTS.md", ".": "AGENTS.md", "repo/empty": "repo/AGENTS.md repo/empty/AGENTS.md",
	} {
		in := ReadInstructions(nil, filepath.Join(root, dir), 0, nil)
		if got := paths(in); got != want || len(in.Faults) > 0 {
			t.Errorf("%s: %s, %q; want %s", dir, got, in.Faults, want)
		}
	}
	in := ReadInstructions(nil, filepath.Join(root, "repo/a/b"), 0, nil)
	want := fmt.Sprintf("--- %[1]s/repo/AGENTS.md\ntop\n\n--- %[1]s/repo/a/CLAUDE.md\nmiddle\n\n--- %[1]s/repo/a/b/AGENTS.md\nleaf", root)
	if !strings.HasSuffix(in.Text, want) || strings.Contains(in.Text, "outside") {
		t.Errorf("got %s", in.Text)
	}
	if in := ReadInstructions(nil, filepath.Join(root, "repo/.git"), 0, nil); len(in.Files) != 1 {
		t.Errorf("%+v", in.Files)
	}
}

// TestInstructionRoom: the nearest get room first, whatever the bound is made of;
// a character is not cut in two.
func TestInstructionRoom(t *testing.T) {
	root := tree(t, map[string]string{
		".git/HEAD": "", "AGENTS.md": strings.Repeat("ü", 20_000), "leaf/AGENTS.md": strings.Repeat("near\n", 5_000),
	})
	leaf := filepath.Join(root, "leaf")
	for _, c := range []struct{ tokens, far, near int }{{1 << 20, 3_884, 5_000}, {10_000, 3_884, 5_000}, {6_400, 0, 5_000}, {2_000, 0, 1_500}} {
		in := ReadInstructions(nil, leaf, c.tokens, func(s string) int { return len(s) / 4 })
		far, near := strings.Count(in.Text, "ü"), strings.Count(in.Text, "near\n")
		if !utf8.ValidString(in.Text) || len(in.Text) > MaxInstructionBytes+1_000 || len(in.Text)/4 > c.tokens {
			t.Errorf("%d tokens: %d bytes", c.tokens, len(in.Text))
		}
		if far > c.far || near < c.near*8/10 || far+near < (c.far+c.near)*8/10 || len(in.Files) != 2 {
			t.Errorf("%d tokens: %d of the far one, %d of the near one", c.tokens, far, near)
		}
		if cut := strings.Contains(in.Text, "bytes left out]"); !cut {
			t.Errorf("%d tokens: nothing is said of what was left out", c.tokens)
		}
	}
	if in := ReadInstructions(nil, leaf, 1, func(s string) int { return len(s) }); strings.Contains(in.Text, "near\nnear") {
		t.Errorf("no room at all: %s", in.Text)
	}
}

// TestListing: many and strange names.
func TestListing(t *testing.T) {
	files := map[string]string{"a\nb": "", "z/x": "", strings.Repeat("n", 200): ""}
	for i := range 110 {
		files[fmt.Sprintf("f%03d", i)] = ""
	}
	root := tree(t, files)
	got, err := Listing(root)
	lines := strings.Split(got, "\n")
	if err != nil || len(lines) != maxListed+1 || lines[0] != `a\nb` || lines[len(lines)-1] != "(and 13 more)" {
		t.Errorf("%v: %s", err, got)
	}
	if got, err := Listing(filepath.Join(root, "z")); got != "x" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Listing(t.TempDir()); got != "(nothing)" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Listing(filepath.Join(root, "none")); err == nil {
		t.Error("no error for a directory that is not there")
	}
}

// The instructions below a directory are those on the way to a file, the nearest last, each once.
func TestNested(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"AGENTS.md": "root", "a/AGENTS.md": "of a", "a/b/CLAUDE.md": "of b", "c/AGENTS.md": "of c"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	known := make(map[string]bool)
	for _, c := range []struct {
		paths []string
		want  string
	}{
		{[]string{"x.go", "../outside/y.go", "/etc/passwd"}, ""},
		{[]string{"a/b/x.go"}, "of a|of b"},
		{[]string{"a/b/y.go", "a/z.go"}, ""},
		{[]string{"c/deep/er/x.go"}, "of c"},
	} {
		var got []string
		for line := range strings.Lines(Nested(dir, c.paths, known)) {
			if strings.HasPrefix(line, "of ") {
				got = append(got, strings.TrimSpace(line))
			}
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q: %q, want %s", c.paths, got, c.want)
		}
	}
}

// A file imports others by @path, as Claude Code does: in place before it, each once, not in code; a project's only
// from the project, and markdown of the user's folders.
func TestImports(t *testing.T) {
	root := tree(t, map[string]string{
		"repo/.git/HEAD": "", "repo/CLAUDE.md": "See @docs/a.md, and (@docs/b\\ c.md).\n`@docs/code.md`\n\n```sh\n@docs/code.md\n```\n" +
			"@anthropic-ai/claude-code @docs me@docs/code.md @../outside.md @.env @../own/mine.md @../own/keys.json @link.md",
		"repo/CLAUDE.local.md": "only here", "repo/docs/a.md": "A @../CLAUDE.md @d1.md", "repo/docs/b c.md": "B", "repo/docs/code.md": "CODE",
		"repo/docs/d1.md": "D1 @d2.md", "repo/docs/d2.md": "D2 @d3.md", "repo/docs/d3.md": "D3 @d4.md", "repo/docs/d4.md": "D4 @d5.md",
		"repo/docs/d5.md": "D5", "repo/.env": "SECRET", "outside.md": "OUTSIDE",
		"own/AGENTS.md": "mine: @../outside2.md", "outside2.md": "OUT2", "own/mine.md": "MINE", "own/keys.json": "KEYS",
		"repo/below/.claude/CLAUDE.md": "of .claude: @rules/x.md", "repo/below/.claude/rules/x.md": "RULE",
	})
	if err := os.Symlink("../outside.md", filepath.Join(root, "repo/link.md")); err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(root, "repo")
	in := ReadInstructions([]string{filepath.Join(root, "own")}, repo, 0, nil)
	var got []string
	for _, f := range in.Files {
		rel, err := filepath.Rel(root, f.Path)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rel)
	}
	want := "outside2.md own/AGENTS.md repo/docs/d4.md repo/docs/d3.md repo/docs/d2.md repo/docs/d1.md repo/docs/a.md repo/docs/b c.md own/mine.md repo/CLAUDE.md repo/CLAUDE.local.md"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
	for _, secret := range []string{"SECRET", "OUTSIDE", "KEYS", "CODE\n", "D5\n"} {
		if strings.Contains(in.Text+"\n", secret) {
			t.Errorf("%s is in the text", secret)
		}
	}
	faults := strings.Join(in.Faults, "\n")
	if len(in.Faults) != 4 || !strings.Contains(faults, "@../outside.md is outside of "+repo) ||
		!strings.Contains(faults, "@.env looks like a file of secrets") {
		t.Errorf("faults:\n%s", faults)
	}
	if text := Nested(repo, []string{"below/x.go"}, map[string]bool{}); !strings.Contains(text, "RULE") ||
		strings.Index(text, "RULE") > strings.Index(text, "of .claude") {
		t.Errorf("below: %s", text)
	}
}
