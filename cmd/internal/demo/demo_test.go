//go:build unix

package demo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/orchestrator/session"
)

// TestEmptyDir: the demo begins in a new or empty directory, and touches no other.
func TestEmptyDir(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", root)
	full, file := filepath.Join(root, "full"), filepath.Join(root, "full", "file")
	if err := os.Mkdir(full, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ dir, want, err string }{
		{filepath.Join(root, "new", "below"), filepath.Join(root, "new", "below"), ""},
		{filepath.Join(root, "new", "below"), filepath.Join(root, "new", "below"), ""}, // it is empty still
		{full, "", "full: not empty; the demo needs a new directory"},
		{file, "", "--dir: "},
		{"", filepath.Join(root, "anamnesis-demo-"), ""},
	} {
		got, err := emptyDir(tt.dir)
		if tt.err != "" {
			if _, usage := err.(*session.UsageError); !usage || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v, want %q", tt.dir, err, tt.err)
			}
			continue
		}
		if err != nil || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%q: %s, %v; want %s", tt.dir, got, err, tt.want)
		}
		if entries, err := os.ReadDir(got); err != nil || len(entries) != 0 {
			t.Errorf("%s: %v, %v", got, entries, err)
		}
	}
}

// TestLay: each recording has its module beside it, whose script is no part of it.
func TestLay(t *testing.T) {
	for _, name := range []string{"one", "two"} {
		dir := t.TempDir()
		module, script := filepath.Join(dir, "m"), filepath.Join(dir, "scripts", name+".yaml")
		if err := lay(module, script, name); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(script); err != nil || !strings.Contains(string(text), "turns:") {
			t.Errorf("%s: %v", script, err)
		}
		files, err := filepath.Glob(filepath.Join(module, "*"))
		if err != nil || len(files) < 3 {
			t.Errorf("%s: %q, %v", name, files, err)
		}
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err != nil {
			t.Error(err)
		}
	}
	if err := lay(t.TempDir(), filepath.Join(t.TempDir(), "s.yaml"), "three"); err == nil {
		t.Error("a recording that is not there was laid out")
	}
}
