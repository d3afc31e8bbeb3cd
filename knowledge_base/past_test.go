package knowledgebase

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
)

// git runs the git program in a folder, with nobody's settings.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatal("git is missing")
		}
		t.Skip("SKIPPED: git is not installed")
	}
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func subjects(t testing.TB, dir string) []string {
	t.Helper()
	return strings.Split(strings.TrimSpace(git(t, dir, "log", "--format=%an: %s")), "\n")
}

func personStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, &Options{Now: fixedNow, Person: history.Person{Name: "Ada", Email: "ada@example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// What the git program says about the folder after each change of ours, with
// a person working there in between: by an editor, with git add, with git gc.
func TestGitAgrees(t *testing.T) {
	dir := t.TempDir()
	s := personStore(t, dir)
	clean := func(want string) {
		t.Helper()
		if err := s.HistoryError(); err != nil {
			t.Fatal(err)
		}
		if got := git(t, dir, "status", "--porcelain"); got != want {
			t.Errorf("git status says %q, want %q", got, want)
		}
		git(t, dir, "fsck", "--strict")
		git(t, dir, "diff-files", "--quiet")
	}
	path := mustPut(t, s, newCard("k1", "a topic", "first"))
	clean("")
	mustPut(t, s, newCard("k2", "another", "first of another"))
	clean("")

	edit := func(path, more string) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(b, more...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	edit(path, "\nA remark.\n")
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	git(t, dir, "add", "README.md")
	mustPut(t, s, newCard("k3", "a third", "first of a third"))
	clean("A  README.md\n") // what a person staged stays staged
	git(t, dir, "commit", "-qm", "Tell what this is")
	git(t, dir, "gc", "-q", "--prune=now")
	mustPut(t, s, newCard("k1", "a topic", "said better"))
	clean("")
	edit(path, "\nAnother remark.\n")
	if err := os.Remove(filepath.Join(dir, "2026-01", "another-k2.md")); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, newCard("k4", "a fourth", "first of a fourth"))
	clean("")
	want := []string{"anamnesis: Add card: a fourth", "Ada: Edited by hand: 2 cards", "anamnesis: Write anew card: a topic", "Ada: Tell what this is",
		"anamnesis: Add card: a third", "Ada: Edited by hand: a topic", "anamnesis: Add card: another", "anamnesis: Add card: a topic"}
	if got := subjects(t, dir); !slices.Equal(got, want) {
		t.Errorf("the history says %q,\nwant %q", got, want)
	}
}

// While git is busy cards are stored all the same, and their commits follow
// with their own words.
func TestHistoryWaitsForGit(t *testing.T) {
	dir := t.TempDir()
	s := personStore(t, dir)
	mustPut(t, s, newCard("k1", "one", "first"))
	git(t, dir, "checkout", "-q", "--detach")
	mustPut(t, s, newCard("k2", "two", "second"))
	mustPut(t, s, newCard("k3", "three", "third"))
	if err := s.HistoryError(); !errors.Is(err, history.ErrBusy) {
		t.Fatalf("detached HEAD: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "2026-01", "two-k2.md")); err != nil { // a person's doing
		t.Fatal(err)
	}
	git(t, dir, "checkout", "-q", "main")
	s = personStore(t, dir) // opening is enough
	if err := s.HistoryError(); err != nil {
		t.Fatal(err)
	}
	want := []string{"anamnesis: Add card: three", "anamnesis: Add card: one"}
	if got := subjects(t, dir); !slices.Equal(got, want) {
		t.Errorf("the history says %q, want %q", got, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "2026-01", "two-k2.md")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a card a person removed came back: %v", err)
	}
	if got := git(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status says %q", got)
	}
}

// An existing folder gets a history that begins with what is there.
func TestHistoryBegins(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "2026-01"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "2026-01", "old-k0.md"), newCard("k0", "old", "x").Markdown(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := personStore(t, dir)
	if revs, err := s.History(t.Context(), "k0"); err != nil || len(revs) != 0 {
		t.Errorf("before the first change: %v, %v", revs, err)
	}
	mustPut(t, s, newCard("k1", "new", "y"))
	want := []string{"anamnesis: Add card: new", "anamnesis: Begin the history of 1 cards"}
	if got := subjects(t, dir); !slices.Equal(got, want) {
		t.Errorf("the history says %q, want %q", got, want)
	}
	if _, err := s.History(t.Context(), "nosuch"); !errors.Is(err, ErrNotFound) {
		t.Errorf("history of no card: %v", err)
	}
}

// The second of two exact copies is not written; the first counts.
func TestExactDuplicate(t *testing.T) {
	s := personStore(t, t.TempDir())
	mustPut(t, s, newCard("k1", "one", "the same"))
	out, err := s.Apply(t.Context(), Change{Cards: []*card.Card{newCard("k2", "one", "the same"), newCard("k3", "other", "words")}})
	if err != nil || !out[0].Rediscovered || out[0].ID != "k1" || out[0].Created || !out[1].Created {
		t.Errorf("%+v, %v", out, err)
	}
	if n := len(s.List()); n != 2 {
		t.Errorf("%d cards, want 2", n)
	}
	tainted := newCard("k4", "dark", "the same dark thing")
	tainted.Provenance.Tainted = true
	mustPut(t, s, tainted)
	if out, err := s.Apply(t.Context(), Change{Cards: []*card.Card{newCard("k5", "dark", "the same dark thing")}}); err != nil || !out[0].Created {
		t.Errorf("a card others may see gave way to one they may not: %+v, %v", out, err)
	}
}
