package usergit

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestRepositoryName holds the name a project has on every machine, and that
// nothing secret or local gets into it.
func TestRepositoryName(t *testing.T) {
	for remote, want := range map[string]string{
		"https://github.com/owner/name.git":               "github.com/owner/name",
		"https://GitHub.com/owner/name/":                  "github.com/owner/name",
		"https://me:secret@example.org:8443/a/b/name.git": "example.org/a/b/name",
		"ssh://git@example.org:2222/name":                 "example.org/name",
		"git@github.com:owner/name.git":                   "github.com/owner/name",
		"example.org:/srv/name.git":                       "example.org/srv/name",
		"/home/me/work/name.git":                          "name",
		"../name":                                         "name",
		"file:///home/me/name.git":                        "name",
		"https://me:se%zz@example.org/name":               "name", // no URL
		"":                                                "top",
	} {
		top := filepath.Join(t.TempDir(), "top")
		inside := filepath.Join(top, "deep", "inside")
		if err := os.MkdirAll(inside, 0o755); err != nil {
			t.Fatal(err)
		}
		if got := RepositoryName(inside); got != "inside" {
			t.Errorf("without a repository: %q", got)
		}
		if err := os.MkdirAll(filepath.Join(top, ".git"), 0o755); err != nil {
			t.Fatal(err)
		}
		conf := "[core]\n\tbare = false\n[remote \"fork\"]\n\turl = https://other.org/x\n"
		if remote != "" {
			conf += "[remote \"origin\"]\n\turl = " + remote + "\n"
		}
		if err := os.WriteFile(filepath.Join(top, ".git", "config"), []byte(conf), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := RepositoryName(inside); got != want {
			t.Errorf("%q: %q, want %q", remote, got, want)
		}
	}
}

// TestRepositoryNameDamaged: a configuration that cannot be read leaves the
// directory's name; the root of all directories has none.
func TestRepositoryNameDamaged(t *testing.T) {
	top := filepath.Join(t.TempDir(), "top")
	if err := os.MkdirAll(filepath.Join(top, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(top, ".git", "config"), []byte("[remote \"origin\"\nurl\x00"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := RepositoryName(top); got != "top" {
		t.Errorf("damaged: %q", got)
	}
	if got := lastPart("/"); got != "" {
		t.Errorf("root: %q", got)
	}
}

// TestIdentity: a repository is known by its remote on a host, by its clone, and by its first commit.
func TestIdentity(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git",
			append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@a.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	if top, ids, first := Identity(dir); top != dir || len(ids) != 1 || ids[0] != "dir:"+dir || first() != "" {
		t.Fatalf("a plain directory: %v, %q", ids, first())
	}
	git("init", "-q")
	if _, ids, first := Identity(dir); len(ids) != 1 || first() != "" {
		t.Fatalf("without a commit: %v, %q", ids, first())
	}
	git("commit", "-q", "--allow-empty", "-m", "one")
	root := "commit:" + git("rev-parse", "HEAD")
	git("commit", "-q", "--allow-empty", "-m", "two")
	_, clone, _ := Identity(dir)
	if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if top, ids, first := Identity(filepath.Join(dir, "sub")); top != dir || !slices.Equal(ids, clone) ||
		first() != root {
		t.Errorf("within it: %v, %q, want %v, %q", ids, first(), clone, root)
	}
	git("gc", "-q")
	git("remote", "add", "origin", "git@Example.org:o/n.git")
	git("worktree", "add", "-q", "wt")
	if _, ids, first := Identity(filepath.Join(dir, "wt")); ids[0] != "remote:example.org/o/n" || first() != root {
		t.Errorf("a worktree: %v, %q", ids, first())
	}
}
