package worktree

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// TestCompare: what becomes of a path that the tree, the other directory or both changed. Each case names what a
// path is at the beginning, here and in the tree afterwards: its text, or "" if it is absent.
func TestCompare(t *testing.T) {
	const lines = "1\n2\n3\n4\n5\n6\n7\n8\n"
	at := func(old, now string) string { return strings.Replace(lines, old, now, 1) }
	for _, tt := range []struct {
		name              string
		base, here, there string
		want              string // here after Apply
		conflict          string
	}{
		{"only the tree", lines, lines, at("8", "x"), at("8", "x"), ""},
		{"only here", lines, at("1", "y"), lines, at("1", "y"), ""},
		{"other lines", lines, at("1", "y"), at("8", "x"), strings.Replace(at("1", "y"), "8", "x", 1), ""},
		{"the same change", lines, at("8", "x"), at("8", "x"), at("8", "x"), ""},
		{"the same line", lines, at("8", "y"), at("8", "x"), at("8", "y"), "modified in the worktree, modified here; the same lines"},
		{"no text", "\x00a", "\x00b", "\x00c", "\x00b", "they cannot be merged"},
		{"added by both", "", "a", "b", "a", "added in the worktree, added here; they cannot be merged"},
		{"deleted in the tree", lines, at("1", "y"), "", at("1", "y"), "deleted in the worktree, modified here"},
		{"deleted here", lines, "", at("8", "x"), "", "modified in the worktree, deleted here"},
		{"deleted by both", lines, "", "", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, dir := t.Context(), t.TempDir()
			h := taskdir.Home{
				User: dir, State: filepath.Join(dir, "home"), Data: filepath.Join(dir, "home"),
				Config: filepath.Join(dir, "home"),
			}
			w := filepath.Join(dir, "w")
			for _, d := range []string{w, h.State} {
				if err := os.Mkdir(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			set(t, w, "stays", "s")
			set(t, w, "f", tt.base)
			m, err := Create(ctx, h, w, "x", worldstate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			set(t, w, "f", tt.here)
			set(t, m.Dir, "f", tt.there)
			set(t, m.Dir, "new", "n")
			c, err := Compare(ctx, h, &m.Worktree, worldstate.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := reasons(c); !strings.Contains(got, tt.conflict) || (got == "") != (tt.conflict == "") {
				t.Errorf("conflicts %q, want %q", got, tt.conflict)
			}
			if _, err := c.Apply(ctx); err != nil {
				t.Fatal(err)
			}
			got, _ := os.ReadFile(filepath.Join(w, "f"))
			if string(got) != tt.want {
				t.Errorf("f is %q, want %q", got, tt.want)
			}
			if got, _ := os.ReadFile(filepath.Join(w, "new")); string(got) != "n" {
				t.Error("what only the tree changed is not here")
			}
		})
	}
}

// TestApplyStale: a change between the comparison and the answer is kept, and nothing is applied.
func TestApplyStale(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	h := taskdir.Home{User: dir, State: filepath.Join(dir, "home")}
	w := filepath.Join(dir, "w")
	for _, d := range []string{w, h.State} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	set(t, w, "f", "1")
	m, err := Create(ctx, h, w, "", worldstate.Options{})
	if err != nil || filepath.Base(m.Root) != "1" {
		t.Fatal(m.Root, err)
	}
	set(t, m.Dir, "f", "2")
	c, err := Compare(ctx, h, &m.Worktree, worldstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	set(t, w, "f", "mine")
	if _, err := c.Apply(ctx); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("error %v, want one of a stale comparison", err)
	}
	if got, _ := os.ReadFile(filepath.Join(w, "f")); string(got) != "mine" {
		t.Errorf("f is %q: a change was overwritten", got)
	}
}

// TestCompareSpecial: a path where the directory has something that no snapshot holds is a conflict; what else the
// tree changed is applied.
func TestCompareSpecial(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	h := taskdir.Home{User: dir, State: filepath.Join(dir, "home")}
	w := filepath.Join(dir, "w")
	for _, d := range []string{w, h.State} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Create(ctx, h, w, "x", worldstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"before", "pipe", "until"} {
		set(t, m.Dir, name, "n")
	}
	if err := syscall.Mkfifo(filepath.Join(w, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := Compare(ctx, h, &m.Worktree, worldstate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := reasons(c); !strings.HasPrefix(got, "pipe: ") || strings.Contains(got, "\n") {
		t.Errorf("conflicts %q", got)
	}
	if len(c.List) != 2 || c.List[0].Path != "before" || c.List[1].Path != "until" {
		t.Errorf("changes %+v", c.List)
	}
	if _, err := c.Apply(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"before", "until"} {
		if got, _ := os.ReadFile(filepath.Join(w, name)); string(got) != "n" {
			t.Errorf("%s was not brought over", name)
		}
	}
	if info, err := os.Lstat(filepath.Join(w, "pipe")); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("the pipe was replaced: %v, %v", info, err)
	}
}

// TestRemove: a tree in which nothing began leaves no directory, no store and nothing in git.
func TestRemove(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	h := taskdir.Home{User: dir, State: filepath.Join(dir, "home")}
	w := filepath.Join(dir, "w")
	if out, err := exec.Command("git", "init", "-q", w).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	commit := exec.Command("git", "-C", w, "-c", "user.name=n", "-c", "user.email=n@x", "commit", "-q",
		"--allow-empty", "-m", "one")
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	m, err := Create(ctx, h, w, "x", worldstate.Options{})
	if err != nil || !m.Git {
		t.Fatal(m, err)
	}
	if err := m.Remove(ctx, h); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{w + "-forks", h.Store(m.Root), filepath.Join(w, ".git", "worktrees")} {
		if _, err := os.Lstat(path); err == nil {
			t.Errorf("%s is still there", path)
		}
	}
	if _, err := Compare(ctx, h, &op.Worktree{From: w, Root: m.Root}, worldstate.Options{}); err == nil ||
		!strings.Contains(err.Error(), "is gone") {
		t.Errorf("error %v, want one that says what is gone", err)
	}
}

func set(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	err := os.RemoveAll(path)
	if text != "" {
		err = os.WriteFile(path, []byte(text), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func reasons(c *Changes) string {
	var all []string
	for _, k := range c.Conflicts {
		all = append(all, k.Path+": "+k.Reason)
	}
	return strings.Join(all, "\n")
}

// TestCreateAtOnce: of sessions that begin at the same time each gets a tree of its own.
func TestCreateAtOnce(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	h := taskdir.Home{User: dir, State: filepath.Join(dir, "home")}
	w := filepath.Join(dir, "w")
	if out, err := exec.Command("git", "init", "-q", w).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	commit := exec.Command("git", "-C", w, "-c", "user.name=n", "-c", "user.email=n@x", "commit", "-q",
		"--allow-empty", "-m", "one")
	if out, err := commit.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	set(t, w, "f", "1")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			m, err := Create(ctx, h, w, "", worldstate.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if got, _ := os.ReadFile(filepath.Join(m.Dir, "f")); string(got) != "1" {
				t.Errorf("%s lacks a file", m.Dir)
			}
		})
	}
	wait.Wait()
	if dirs, _ := os.ReadDir(w + "-forks"); len(dirs) != 4 {
		t.Errorf("%d trees, want 4", len(dirs))
	}
	if _, err := Create(ctx, h, w, "2", worldstate.Options{}); err == nil || !strings.Contains(err.Error(), "exists") {
		t.Errorf("error %v, want one of a name in use", err)
	}
	if got, _ := os.ReadFile(filepath.Join(w+"-forks", "2", "f")); string(got) != "1" {
		t.Error("a name in use took the tree of that name away")
	}
}
