package workspace

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestSurvivedSince: of what no world holds, what changed is named, by the
// rules of all ignore files, and what did not is not.
func TestSurvivedSince(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "repo", "world")
	files := map[string]bool{ // Changed since?
		"node_modules/a/index.js": false, "node_modules/new": true,
		"sub/out/x": true, "sub/kept.log": true, "sub/secret": true, "old/x": false, "src/main.go": true, "above.tmp": true, "top.tmp": true,
		"old/deep/er/x": false, "dist/assets/js/x": true,
	}
	since := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name := range files {
		write(t, filepath.Join(dir, name), "x")
	}
	write(t, filepath.Join(dir, ".gitignore"), "node_modules/\nold/\ndist/\n*.log\n")
	write(t, filepath.Join(dir, "sub", ".gitignore"), "/out/\n!kept.log\n")
	git := filepath.Join(filepath.Dir(dir), ".git")
	write(t, filepath.Join(git, "info", "exclude"), "secret\n/world/above.tmp\n")
	write(t, filepath.Join(filepath.Dir(dir), ".gitignore"), "top.tmp\n")
	for name, changed := range files {
		if !changed {
			age(t, dir, name, since.Add(-time.Hour))
		}
	}
	// Written over far down: no folder above has a later time.
	age(t, dir, "dist/assets/js", since.Add(-time.Hour))
	got := SurvivedSince(dir, since)
	// The folder itself has a later time, too: something was put into it.
	want := []string{"above.tmp", "dist", "node_modules", "sub/out", "sub/secret", "top.tmp"}
	if !slices.Equal(got.Ignored, want) {
		t.Errorf("ignored: %q, want %q", got.Ignored, want)
	}
	if later := SurvivedSince(dir, time.Now().Add(time.Hour)); len(later.Ignored) != 0 {
		t.Errorf("since the future: %+v, want nothing", later)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// age returns a path, and the folders it lies in, an earlier time.
func age(t *testing.T, dir, name string, at time.Time) {
	t.Helper()
	for p := name; p != "." && p != "node_modules"; p = filepath.Dir(p) {
		if err := os.Chtimes(filepath.Join(dir, p), at, at); err != nil {
			t.Fatal(err)
		}
	}
}
