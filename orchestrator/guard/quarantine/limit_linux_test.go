package quarantine

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestQuarantineLimit: beyond the limit of directories what was found is judged,
// no command starts, and nothing of it comes to count as the user's.
func TestQuarantineLimit(t *testing.T) {
	world := t.TempDir()
	plain := func(text string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", text)
		cmd.Dir = world
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + world, "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", text, err, out)
		}
	}
	plain(`git init -q . && git init -q sub`)
	q, err := Open(Options{Dir: t.TempDir(), World: world})
	if err != nil {
		t.Fatal(err)
	}
	setLimit := func(n int) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.limit = n
	}
	if _, err := q.Begin(); err != nil {
		t.Fatal(err)
	}
	plain(`for d in a z; do mkdir -p $d/r; git init -q $d/r; git -C $d/r config core.fsmonitor x; mkdir -p m/$d; done`)
	setLimit(12)
	note := q.End()
	if !strings.Contains(note, "more than") {
		t.Errorf("the report: %q", note)
	}
	if _, err := q.Begin(); err == nil {
		t.Error("a command began")
	}
	setLimit(maxGitDirs)
	if _, err := q.Begin(); err != nil {
		t.Fatal(err)
	}
	note += q.End()
	for _, rel := range []string{"a/r/.git/config", "z/r/.git/config"} {
		if data, err := os.ReadFile(filepath.Join(world, rel)); err != nil ||
			strings.Contains(string(data), "fsmonitor") {
			t.Errorf("%s: %q, %v; %s", rel, data, err, note)
		}
	}
}
