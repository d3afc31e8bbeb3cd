package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// secretHeld reports whether a file of the folder, or its name, holds the key. The
// history is not the program's to rewrite.
func (f kbFolder) secretHeld(key string) bool {
	f.Helper()
	held := false
	err := filepath.WalkDir(filepath.Join(f.dir, "cards"), func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		held = held || strings.Contains(string(data), key) || strings.Contains(path, strings.ToLower(key))
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return held
}

// TestKillRedact kills 'kb redact --yes' before each of its system calls that
// change something. The next start finds the folder as it was or without the key,
// and never a part of either; run again, the key is gone.
func TestKillRedact(t *testing.T) {
	heavy(t)
	t.Parallel()
	const key = "A7fK2mQ9xZ3bV8nL5tR1wY6cH4jD0pSgE2uN"
	f := newKBFolder(t)
	text := "---\ntype: knowledge_card\ntopic: ghp_" + key +
		"\nsource_task: t\nid: s1\ncreated: 2026-01-09\n---\n- **Issue**: ghp_" + key + "\n"
	path := filepath.Join(f.dir, "cards", "2026-01", "ghp-"+strings.ToLower(key)+"-s1.md")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.git("add", "-A")
	f.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "ghp_"+key)
	f.run("redact") // lists, and makes the key that markers are made with
	old := f.cards()
	whole := f.copy()
	verb := []string{"redact", "--yes"}
	_, total, _ := killedAt(t, whole.command(verb...), 0)
	want := whole.cards()
	if whole.secretHeld(key) || maps.Equal(old, want) {
		t.Fatal("the key is not removed")
	}
	head := f.git("rev-parse", "HEAD")
	ends := [2]int{}
	eachKill(total, killsOf(4, 200), func(at int) {
		g := f.copy()
		_, _, last := killedAt(t, g.command(verb...), at)
		when := "killed before call " + last
		g.checkAfterKill(when, old, want, &ends)
		switch now := g.cards(); {
		case maps.Equal(now, want):
			if g.secretHeld(key) {
				t.Errorf("%s (%d): the cards are new, and the key is held", when, at)
			}
		case g.git("rev-parse", "HEAD") != head:
			t.Errorf("%s (%d): the cards are old, and the history is not", when, at)
		}
		g.run(verb...)
		if g.secretHeld(key) {
			t.Errorf("%s (%d): run again, the key is held", when, at)
		}
		if out, err := exec.Command("git", "-C", filepath.Join(g.dir, "cards"), "status", "--porcelain").Output(); err != nil || len(out) > 0 {
			t.Errorf("%s (%d): git status: %q, %v", when, at, out, err)
		}
	})
	t.Logf("%d calls; %d ended old, %d new", total, ends[0], ends[1])
	if ends[0] == 0 || ends[1] == 0 {
		t.Errorf("ends %v: the kills do not reach its inside", ends)
	}
}
