package usergit

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/tree"
)

// TestAround follows a worktree's file, takes the rules above a directory, and does
// without a repository.
func TestAround(t *testing.T) {
	root := t.TempDir()
	own := filepath.Join(root, "main", ".git", "worktrees", "w")
	for name, text := range map[string]string{
		"main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n", "main/.git/worktrees/w/commondir": "../..\n", "main/.git/info/exclude": "*.tmp\n",
		"w/.git": "gitdir: ../main/.git/worktrees/w\n", "w/.gitignore": "/sub/out\n", "w/sub/file": "", "odd/.git": "nothing known\n",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gitDir, common, outer := Around(filepath.Join(root, "w", "sub"))
	if gitDir != own || common != filepath.Join(root, "main", ".git") {
		t.Errorf("%q, %q", gitDir, common)
	}
	if !outer.Ignored("a.tmp", false) || !outer.Ignored("out", true) || outer.Ignored("file", false) {
		t.Errorf("the rules are %v", outer)
	}
	if gitDir, _, outer := Around(filepath.Join(root, "odd")); gitDir != "" || len(outer) > 0 {
		t.Errorf("%q, %v of a file that names no directory", gitDir, outer)
	}
}

// TestPipes: a repository with a pipe in place of a file that git reads is not read, and that is noted: who opens a
// pipe waits.
func TestPipes(t *testing.T) {
	for _, name := range []string{"HEAD", "index", "config", "packed-refs", "info/exclude"} {
		top := t.TempDir()
		pipe := filepath.Join(top, ".git", name)
		if err := os.MkdirAll(filepath.Dir(pipe), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(pipe, 0o644); err != nil {
			t.Fatal(err)
		}
		r := readRepository(top)
		if want := filepath.Base(name) + " is not a regular file"; r.gitDir != "" || len(r.Notes) != 1 ||
			!strings.Contains(r.Notes[0].Reason, want) {
			t.Errorf("%s: read %q, notes %v", name, r.gitDir, r.Notes)
		}
	}
}

// TestReadRepository: the rules, the index and the place of the repository around a directory; only what is there and
// cannot be read is noted.
func TestReadRepository(t *testing.T) {
	long := strings.Repeat("#", tree.MaxIgnoreBytes)
	for name, tt := range map[string]struct {
		files map[string]string
		notes string
		git   bool
	}{
		"none":                    {map[string]string{"w/a": ""}, "", false},
		"bare of rules":           {map[string]string{".git/HEAD": ""}, "", true},
		"the longest rules":       {map[string]string{".git/HEAD": "", ".gitignore": long}, "", true},
		"too long rules":          {map[string]string{".git/HEAD": "", ".gitignore": long + "#"}, "../.gitignore not read: over", true},
		"too long an exclude":     {map[string]string{".git/info/exclude": long + "#"}, ".git/info/exclude not read: over", true},
		"rules that are a folder": {map[string]string{".git/HEAD": "", ".gitignore/x": ""}, "", true},
		"no index":                {map[string]string{".git/index": "rubbish"}, ".git/index not read: ", true},
		"a file without a place":  {map[string]string{".git": "gitdir:"}, ".git not read: the .git file names no directory", false},
		"a file with a place":     {map[string]string{".git": "gitdir: other\n", "other/HEAD": ""}, "", true},
	} {
		top := t.TempDir()
		for path, text := range tt.files {
			path = filepath.Join(top, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(top, "w"), 0o755); err != nil {
			t.Fatal(err)
		}
		r := readRepository(filepath.Join(top, "w"))
		notes := ""
		for _, n := range r.Notes {
			notes += n.Path + " " + n.Reason
		}
		if !strings.HasPrefix(notes, tt.notes) || (notes == "") != (tt.notes == "") || (r.gitDir != "") != tt.git ||
			tt.git && r.up != "w" {
			t.Errorf("%s: notes %q, git %q, up %q", name, notes, r.gitDir, r.up)
		}
	}
}
