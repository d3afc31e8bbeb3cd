package usergit

import (
	"os"
	"path/filepath"
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
