//go:build unix

package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// smallTree is a directory with what a copy must carry over.
func smallTree(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatal("git is not installed: CI must have it")
		}
		t.Skip("NOT CHECKED: git is not installed")
	}
	dir := filepath.Join(t.TempDir(), "project")
	for i := range 12 {
		path := filepath.Join(dir, fmt.Sprintf("d%d", i%3), fmt.Sprintf("f%d", i))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, fmt.Appendf(nil, "file %d\n", i), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("d0/f0", filepath.Join(dir, "link")), os.Chmod(filepath.Join(dir, "d0/f0"), 0o755)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestRowFigures does every row once with every subject: all of them work, ours returns
// git's tree ids, and the directory measured is left alone.
func TestRowFigures(t *testing.T) {
	dir := smallTree(t)
	before, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), Options{Dir: dir, Rounds: 1, Log: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Files != 13 || len(r.Rows) != len(Rows()) {
		t.Errorf("%d files, %d rows", r.Files, len(r.Rows))
	}
	for _, row := range r.Rows {
		if row.Note != "" {
			t.Errorf("%s: %s", row.Name, row.Note)
		}
		for _, f := range row.Figures {
			if f.Note != "" || f.Wall <= 0 || f.Ratio <= 0 {
				t.Errorf("%s: %+v", row.Name, f)
			}
		}
		if row.SameTree != row.Compared || row.Compared == 0 && !bytes.HasPrefix([]byte(row.Name), []byte("restore")) {
			t.Errorf("%s: %d of %d trees are git's", row.Name, row.SameTree, row.Compared)
		}
	}
	var text bytes.Buffer
	if err := r.WriteText(&text); err != nil || !bytes.Contains(text.Bytes(), []byte("restore-1000")) {
		t.Errorf("%v\n%s", err, &text)
	}
	after, err := os.ReadDir(dir)
	if err != nil || len(after) != len(before) {
		t.Errorf("the directory measured has %d entries, had %d (%v)", len(after), len(before), err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), "anamnesis-bench-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestOptions(t *testing.T) {
	if _, err := Run(context.Background(), Options{Dir: t.TempDir(), Only: []string{"nope"}}); !errors.Is(err, ErrUsage) {
		t.Errorf("an unknown row: %v", err)
	}
}

// TestIgnored: what is ignored is not changed, and a tree of which nothing is
// saved is nothing to measure.
func TestIgnored(t *testing.T) {
	dir := smallTree(t)
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("d0\nd1\nd2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tr, err := copyTree(context.Background(), dir, filepath.Join(t.TempDir(), "copy"))
	if err == nil {
		err = tr.removeIgnored(context.Background(), filepath.Join(t.TempDir(), "repo"))
	}
	if err != nil || len(tr.files) != 1 || filepath.Base(tr.files[0]) != ".gitignore" {
		t.Errorf("%v: %q", err, tr.files)
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(context.Background(), Options{Dir: dir, Rounds: 1, Log: func(string) {}}); !errors.Is(err, ErrUsage) {
		t.Errorf("a tree that is ignored: %v", err)
	}
}

// TestNotRestored: a restore that restores nothing is seen.
func TestNotRestored(t *testing.T) {
	from := smallTree(t)
	tr, err := copyTree(context.Background(), from, filepath.Join(t.TempDir(), "copy"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tr.change(3, 7); err != nil {
		t.Fatal(err)
	}
	if tr.expect(3, 7) == nil || tr.expect(3, 8) != nil {
		t.Error("a change left in place is not noticed")
	}
}
