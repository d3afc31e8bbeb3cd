package knowledgebase

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

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
	cmd := exec.Command("git",
		append([]string{"-C", dir, "-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...)
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
// a user working there in between: by an editor, with git add, with git gc.
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
	clean("A  README.md\n") // what a user staged stays staged
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
	git(t, dir, "reset", "-q", "HEAD~1") // a fourth is there, and no commit knows it
	mustPut(t, s, newCard("k5", "a fifth", "first of a fifth"))
	clean("")
	want := []string{"anamnesis: Add card: a fifth", "Ada: Edited by hand: a fourth", "Ada: Edited by hand: 2 cards",
		"anamnesis: Write anew card: a topic", "Ada: Tell what this is",
		"anamnesis: Add card: a third", "Ada: Edited by hand: a topic", "anamnesis: Add card: another", "anamnesis: Add card: a topic"}
	if got := subjects(t, dir); !slices.Equal(got, want) {
		t.Errorf("the history says %q,\nwant %q", got, want)
	}
}

// ci reports whether CI runs the tests, which then take their full counts.
func ci() bool { return os.Getenv("ANAMNESIS_CI") != "" }

// Whatever a user does between two changes, with an editor or with git:
// after the second nothing of theirs is left uncommitted, and git agrees. The changes are
// made by one process, by another beside it, and by others that end with the change.
func TestNothingStaysUncommitted(t *testing.T) {
	seeds := uint64(6)
	if !ci() {
		seeds = 2
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		dir := t.TempDir()
		open := func() *Store {
			s, err := Open(dir, &Options{Now: fixedNow, Person: history.Person{Name: "Ada", Email: "ada@example.org"},
				Watch: seed%3 == 0})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		stores := []*Store{open(), open()}
		for i := range 18 {
			s := append(stores, open())[r.IntN(3)]
			id := fmt.Sprintf("k%d", r.IntN(5))
			if _, _, err := s.Put(t.Context(), newCard(id, "topic "+id, fmt.Sprintf("text %d", i))); err != nil &&
				!errors.As(err, new(*ConflictError)) {
				t.Fatal(err)
			}
			if err := s.HistoryError(); err != nil {
				t.Fatal(err)
			}
			if got := git(t, dir, "status", "--porcelain"); got != "" {
				t.Fatalf("seed %d: change %d left %q", seed, i, got)
			}
			for range r.IntN(3) {
				handle(t, r, dir, i)
			}
			if seed%3 > 0 {
				continue
			}
			if _, err := s.Search(t.Context(), Query{Text: "topic"}); err != nil { // which reads a watched folder again
				t.Fatal(err)
			}
		}
	}
}

// A process that read a card before another one changed it does not note that the commit
// holds what it read: the user's return to that text would not be seen.
func TestNoteOfCommitHoldsNoOldCard(t *testing.T) {
	dir := t.TempDir()
	path := mustPut(t, personStore(t, dir), newCard("k1", "a topic", "first"))
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	behind := personStore(t, dir)
	mustPut(t, personStore(t, dir), newCard("k1", "a topic", "second"))
	mustPut(t, behind, newCard("k2", "another", "first of another"))
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	mustPut(t, personStore(t, dir), newCard("k3", "a third", "first of a third"))
	if got := git(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("the change after the edit left %q", got)
	}
}

// A card whose file a user removed is gone from memory when the folder is read
// again; the next change commits that all the same.
func TestRemovalSeenBeforeIsCommitted(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir,
		&Options{Now: fixedNow, Person: history.Person{Name: "Ada", Email: "ada@example.org"}, Watch: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	first := mustPut(t, s, newCard("k1", "a topic", "first"))
	mustPut(t, s, newCard("k2", "another", "first of another"))
	mustPut(t, s, newCard("k3", "a third", "first of a third")) // which looks at the files of both
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Search(t.Context(), Query{Text: "topic"}); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, newCard("k4", "a fourth", "first of a fourth"))
	if got := git(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("the change after the removal left %q", got)
	}
}

// A file in the folder that is no card of memory, as it cannot be read or says
// the id of another, is in the history like any; so is its removal.
func TestRemovalOfNoCardIsCommitted(t *testing.T) {
	for name, text := range map[string]string{"broken.md": "no card\n", "z-copy.md": string(newCard("k1", "a topic", "first").Markdown())} {
		dir := t.TempDir()
		open := func() *Store {
			s, err := Open(dir, &Options{Now: fixedNow, Person: history.Person{Name: "Ada", Email: "ada@example.org"}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			return s
		}
		path := filepath.Join(filepath.Dir(mustPut(t, open(), newCard("k1", "a topic", "first"))), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		mustPut(t, open(), newCard("k2", "another", "first of another")) // which commits it
		s := open()
		mustPut(t, s, newCard("k3", "a third", "first of a third")) // which finds all committed
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		mustPut(t, s, newCard("k4", "a fourth", "first of a fourth"))
		if got := git(t, dir, "status", "--porcelain"); got != "" {
			t.Errorf("%s: the change after the removal left %q", name, got)
		}
	}
}

// Cards that a user's sparse checkout leaves out of the folder are not removed.
func TestSparseCheckoutRemovesNoCard(t *testing.T) {
	dir := t.TempDir()
	left := newCard("k1", "a topic", "first")
	left.Created = left.Created.AddDate(0, 2, 0)
	path := mustPut(t, personStore(t, dir), left)
	mustPut(t, personStore(t, dir), newCard("k2", "another", "first of another"))
	git(t, dir, "status") // which notes the times of the files: git removes only those it knows unchanged
	git(t, dir, "sparse-checkout", "set", "--cone", "2026-01")
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("git has left it there: %v", err)
	}
	mustPut(t, personStore(t, dir), newCard("k3", "a third", "first of a third"))
	if got := git(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("git status says %q", got)
	}
	git(t, dir, "sparse-checkout", "disable")
	if _, err := personStore(t, dir).Get("k1"); err != nil {
		t.Errorf("back from the sparse checkout: %v", err)
	}
}

// A pipe in a card's place is not read: that would wait for who writes to it.
func TestPipeInPlaceOfCard(t *testing.T) {
	s, err := Open(t.TempDir(), &Options{Now: fixedNow, Person: history.Person{Name: "Ada", Email: "ada@example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	path := mustPut(t, s, newCard("k1", "a topic", "first"))
	if err := errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)); err != nil {
		t.Fatal(err)
	}
	// A change that opened the pipe would wait for ever.
	if _, _, err := s.Put(t.Context(), newCard("k2", "another", "first of another")); err != nil {
		t.Error(err)
	}
}

// What waited for its commit and lost the note of it is committed as an edit.
func TestForgottenIntentIsCommitted(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, &Options{Now: fixedNow, Person: history.Person{Name: "Ada", Email: "ada@example.org"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	mustPut(t, s, newCard("k1", "a topic", "first"))
	busy := filepath.Join(dir, ".git", "MERGE_HEAD")
	if err := os.WriteFile(busy, []byte(git(t, dir, "rev-parse", "HEAD")), 0o600); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, newCard("k2", "another", "first of another"))
	if s.HistoryError() == nil {
		t.Fatal("git is not busy")
	}
	waiting, err := filepath.Glob(filepath.Join(dir, indexDir, "written-*"))
	if err != nil || len(waiting) != 1 {
		t.Fatal(waiting, err)
	}
	if err := errors.Join(os.Remove(waiting[0]), os.Remove(busy)); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, newCard("k3", "a third", "first of a third"))
	if got := git(t, dir, "status", "--porcelain"); got != "" {
		t.Errorf("the change after it left %q", got)
	}
}

// handle does one thing to the folder as a user would.
func handle(t *testing.T, r *rand.Rand, dir string, i int) {
	files, err := filepath.Glob(filepath.Join(dir, "2026-01", "*.md"))
	if err != nil || len(files) == 0 {
		return
	}
	path := files[r.IntN(len(files))]
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	switch acts := []string{"edit", "back", "remove", "copy", "break", "commit", "undo", "gc"}; acts[r.IntN(len(acts))] {
	case "edit":
		err = os.WriteFile(path, fmt.Appendf(data, "\nRemark %d.\n", i), 0o600)
	case "back": // the same bytes in another file
		err = errors.Join(os.Remove(path), os.WriteFile(path, data, 0o600))
	case "remove":
		err = os.Remove(path)
	case "copy":
		err = os.WriteFile(strings.TrimSuffix(path, ".md")+"-copy.md", data, 0o600)
	case "break":
		err = os.WriteFile(path, []byte("no card\n"), 0o600)
	case "commit":
		err = os.WriteFile(path, fmt.Appendf(data, "\nCommitted %d.\n", i), 0o600)
		git(t, dir, "add", "2026-01")
		git(t, dir, "commit", "-q", "--allow-empty", "-m", "By hand")
	case "undo": // the branch goes back, the files stay
		if strings.Count(git(t, dir, "log", "--format=%h"), "\n") > 1 {
			git(t, dir, "reset", "-q", "HEAD~1")
		}
	case "gc":
		git(t, dir, "gc", "-q", "--prune=now")
	}
	if err != nil {
		t.Fatal(err)
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
	if err := os.Remove(filepath.Join(dir, "2026-01", "two-k2.md")); err != nil { // a user's doing
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
		t.Errorf("a card a user removed came back: %v", err)
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
	out, err := s.Apply(t.Context(),
		Change{Cards: []*card.Card{newCard("k2", "one", "the same"), newCard("k3", "other", "words")}})
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
