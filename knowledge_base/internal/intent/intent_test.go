package intent

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"anamnesis/opstream/durable"
)

// A dead writer's change is completed, except in files that hold what neither it nor the state before it had.
func TestReplay(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), durable.DirMode); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), durable.FileMode); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"2026-01/old.md": "before", "2026-01/done.md": "after", "2026-01/edited.md": "a user's", "2026-01/gone.md": "before", ".index/x": ""} {
		write(name, text)
	}
	index := filepath.Join(dir, ".index")
	in := New(index, time.Unix(1e9, 0))
	before := Sum([]byte("before"))
	in.Files = []File{{Path: "2026-01/old.md", Before: before, Data: "after"},
		{Path: "2026-01/done.md", Before: before, Data: "after"},
		{Path: "2026-01/edited.md", Before: before, Data: "after"}, {Path: "2026-01/gone.md", Before: before, Gone: true},
		{Path: "2026-02/new.md", Data: "after"}}
	if err := in.Write(durable.OS{}); err != nil {
		t.Fatal(err)
	}
	pending, err := Pending(index)
	if err != nil || len(pending) != 1 {
		t.Fatalf("%+v, %v", pending, err)
	}
	var changed []string
	if err := pending[0].Replay(durable.OS{}, dir, func(path string) { changed = append(changed, filepath.Base(path)) }); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"2026-01/old.md": "after", "2026-01/done.md": "after", "2026-01/edited.md": "a user's", "2026-02/new.md": "after"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", name, got, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "2026-01/gone.md")); err == nil || !slices.Equal(changed, []string{"old.md", "gone.md", "new.md"}) {
		t.Errorf("changed %v, removed: %v", changed, err)
	}
}

// An intent that names files other than cards, or cannot be read, is set aside and not carried out.
func TestPendingRefuses(t *testing.T) {
	for _, text := range []string{
		"torn", `{"v":2}`, `{"v":1,"files":[{"path":"../x","data":"x"}]}`, `{"v":1,"files":[{"path":".git/config","data":"x"}]}`,
		`{"v":1,"theirs":"c","files":[{"path":"../x","data":"x"}]}`,
		`{"v":1,"theirs":"c","files":[{"path":".git/config","data":"x"}]}`,
	} {
		index := t.TempDir()
		if err := os.WriteFile(filepath.Join(index, changePrefix+"1.json"), []byte(text), durable.FileMode); err != nil {
			t.Fatal(err)
		}
		if got, err := Pending(index); err != nil || len(got) != 0 {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if left, err := filepath.Glob(filepath.Join(index, "unreadable-*")); err != nil || len(left) != 1 {
			t.Errorf("%s: set aside %v, %v", text, left, err)
		}
	}
}
