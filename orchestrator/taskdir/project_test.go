package taskdir

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"anamnesis/worldstate"
)

// TestProject: a project has the tasks below the top of its repository, those of worktrees that were made of it and
// those of other clones of the same remote. A directory in no repository has the tasks in it.
func TestProject(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{root}, names...)...) }
	for _, dir := range []string{in("app", ".git"), in("app", "sub"), in("local", ".git"), in("plain", "sub")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	config := "[remote \"origin\"]\n\turl = git@example.org:team/app.git\n"
	if err := os.WriteFile(in("app", ".git", "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	const remote = "example.org/team/app"
	for _, c := range []struct {
		at, repo, dir, made string
		want                bool
	}{
		{in("app", "sub"), remote, in("app"), "", true},
		{in("app"), remote, in("app", "sub"), "", true},
		{in("app"), remote, "/elsewhere/clone", "", true},
		{in("app"), "", in("app-forks", "one"), in("app"), true},
		{in("app"), "app", in("app-forks", "one"), "", false},
		{in("app"), "app", in("app2"), "", false},
		{in("app"), "app", root, "", false},
		{in("local"), "local", "/elsewhere/local", "", false},
		{in("local"), "local", in("local"), "", true},
		{in("plain"), "sub", in("plain", "sub"), "", true},
		{in("plain", "sub"), "plain", in("plain"), "", false},
		{in("plain"), "", "", "", false}, // a task that cannot be read
		{"/", "", "/elsewhere", "", true},
	} {
		p, err := ProjectAt(c.at)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Has(c.repo, c.dir, c.made); got != c.want {
			t.Errorf("in %s, a task of %q in %q, made of %q: %v, want %v", c.at, c.repo, c.dir, c.made, got, c.want)
		}
	}
	if _, err := ProjectAt(in("gone")); !errors.Is(err, worldstate.ErrNoDirectory) {
		t.Errorf("of a directory that does not exist: %v", err)
	}
}
