package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/cmd/internal/exit"
)

// cardFile writes a card to be added and returns its path.
func (f kbFolder) cardFile(id, issue string) string {
	f.Helper()
	path := filepath.Join(f.dir, id+".md")
	text := fmt.Sprintf("---\ntype: knowledge_card\ntopic: lesson %s\nsource_task: t\nid: %s\ncreated: 2026-01-01\n---\n- **Issue**: %s\n", id, id, issue)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.Fatal(err)
	}
	return path
}

// refused runs a verb that must fail with a code, in one line that holds the
// words.
func (f kbFolder) refused(code int, words string, env []string, args ...string) {
	f.Helper()
	cmd := f.command(args...)
	cmd.Env = append(cmd.Env, env...)
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != code || strings.Count(string(out), "\n") != 1 ||
		!strings.Contains(string(out), words) {
		f.Errorf("kb %s: exit %d (%v), want %d and one line with %q; it said\n%s", args[0], cmd.ProcessState.ExitCode(),
			err, code, words, out)
	}
}

// A full disk costs the card that did not fit, and nothing that was there;
// with room again the same command goes through.
func TestCardsOnFullDisk(t *testing.T) {
	disk := smallDisk(t, "size=2m")
	f := kbFolder{t, t.TempDir()}
	if err := os.Symlink(disk, filepath.Join(f.dir, "cards")); err != nil {
		t.Fatal(err)
	}
	f.run("add", f.cardFile("k1", "small"))
	old := f.cards()
	ballast := filepath.Join(disk, "ballast")
	if err := exec.Command("sh", "-c", "cat /dev/zero >"+ballast).Run(); err == nil {
		t.Fatal("the disk is not full: nothing is tested")
	}
	big := f.cardFile("k2", strings.Repeat("a long lesson ", 20_000))
	f.refused(exit.Failed, "no space left on device", nil, "add", big)
	if now := f.cards(); len(now) != len(old) || now["lesson-k1-k1.md"] != old["lesson-k1-k1.md"] {
		t.Errorf("the cards became %q", now)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.run("add", big)
	if n := len(f.cards()); n != 2 {
		t.Errorf("%d cards once there was room", n)
	}
	f.git("fsck", "--strict")
	if left := f.debris(); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Programs that write at the same time wait for one another: every card is
// there, and each change is one commit.
func TestCardsByManyPrograms(t *testing.T) {
	const programs = 8
	f := kbFolder{t, t.TempDir()}
	f.run("add", f.cardFile("k0", "first"))
	var running []*exec.Cmd
	var said [programs]strings.Builder
	for i := range programs {
		cmd := f.command("add", f.cardFile(fmt.Sprintf("p%d", i), fmt.Sprintf("lesson of program %d", i)))
		cmd.Stdout, cmd.Stderr = &said[i], &said[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for i, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Errorf("program %d: %v\n%s", i, err, &said[i])
		}
	}
	if n := len(f.cards()); n != programs+1 {
		t.Errorf("%d cards", n)
	}
	if n := strings.Count(f.git("log", "--format=%s"), "Add card"); n != programs+1 {
		t.Errorf("%d commits that add a card:\n%s", n, f.git("log", "--format=%s"))
	}
	if status := f.git("status", "--porcelain"); status != "" {
		t.Errorf("git status says %q", status)
	}
	f.git("fsck", "--strict")
}

// Without the git program cards are stored, and their commits follow once it is there.
func TestCardsWithoutGit(t *testing.T) {
	f := kbFolder{t, t.TempDir()}
	f.run("add", f.cardFile("k1", "one"))
	none := []string{"PATH=" + t.TempDir()}
	add := f.command("add", f.cardFile("k2", "two"))
	add.Env = append(add.Env, none...)
	out, err := add.CombinedOutput()
	if said := "written, and not in the folder's history yet: the git program is not installed\n"; err != nil ||
		strings.Count(string(out), said) != 1 {
		t.Errorf("%v; it said %q, want once %q", err, out, said)
	}
	f.refused(exit.Usage, "the git program is not installed; install git", none, "sync", "../remote.git")
	f.run("list")
	if got, want := f.git("log", "--format=%s"), "Add card: lesson k2\nAdd card: lesson k1\n"; got != want {
		t.Errorf("the history is %q, want %q", got, want)
	}
}
