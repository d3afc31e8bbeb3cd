package session

import (
	"io/fs"
	"path/filepath"
	"testing"

	"anamnesis/orchestrator/taskdir"
)

// TestCountLines: a patch's head counts as no line.
func TestCountLines(t *testing.T) {
	patch := "--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n same\n-old\n--- gone\n+new\n+++ more\n\\ No newline\n"
	if added, removed := countLines(patch); added != 2 || removed != 2 {
		t.Errorf("%d added, %d removed", added, removed)
	}
	for path, want := range map[string]bool{"a": true, "a/b": true, "ab": false, "c/d/e": true, "c": false, "x": false} {
		if got := beneath(path, []string{"./a/", "c/d"}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
	for _, root := range []string{".", "./", "/", ""} {
		if !beneath("any/path", []string{root}) {
			t.Errorf("nothing is beneath %q", root)
		}
	}
}

// TestIsTask: a place is a task's own if what it names of directory and store is the task's.
func TestIsTask(t *testing.T) {
	home := func() (taskdir.Home, error) { return taskdir.Home{}, fs.ErrPermission }
	dir := t.TempDir()
	for want, places := range map[bool][]Place{true: {{Task: "t"}}, false: {{}, {Dir: dir}, {Task: "t", Dir: dir}, {Task: "t", Store: dir}}} {
		for _, p := range places {
			if got := p.IsTask(home); got != want {
				t.Errorf("%+v: %v", p, got)
			}
		}
	}
	if !samePlace(dir, dir+"/.") || samePlace(dir, filepath.Dir(dir)) || samePlace(dir, dir+"/gone") ||
		samePlace(dir+"/gone", dir) {
		t.Error("samePlace is wrong")
	}
}
