package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/card"
)

// kbFolder is a folder of cards a verb is killed in.
type kbFolder struct {
	testing.TB
	dir string
}

func (f kbFolder) command(args ...string) *exec.Cmd {
	args = append([]string{"kb", "--kb", filepath.Join(f.dir, "cards")}, args...)
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = f.dir
	cmd.Env = append(os.Environ(), "ANAMNESIS_TEST_MAIN=1", "ANAMNESIS_HOME="+filepath.Join(f.dir, "home"), "EDITOR=")
	return cmd
}

func (f kbFolder) run(args ...string) string {
	f.Helper()
	out, err := f.command(args...).CombinedOutput()
	if err != nil {
		f.Fatalf("kb %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (f kbFolder) git(args ...string) string {
	f.Helper()
	out, err := exec.Command("git", append([]string{"-C", filepath.Join(f.dir, "cards")}, args...)...).CombinedOutput()
	if err != nil {
		f.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// copy is the same folder at another place.
func (f kbFolder) copy() kbFolder {
	f.Helper()
	to := kbFolder{f.TB, filepath.Join(f.TempDir(), "f")}
	if err := os.CopyFS(to.dir, os.DirFS(f.dir)); err != nil {
		f.Fatal(err)
	}
	return to
}

// cards returns the bytes of all card files by path, whole cards all of them.
func (f kbFolder) cards() map[string]string {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join(f.dir, "cards", "20*", "*.md"))
	if err != nil {
		f.Fatal(err)
	}
	out := make(map[string]string)
	for _, p := range paths {
		data, err := os.ReadFile(p)
		if err != nil {
			f.Fatal(err)
		}
		if _, err := card.Parse(data); err != nil {
			f.Errorf("half a card: %s: %v", p, err)
		}
		// Dates of reviews differ from run to run.
		lines := slices.DeleteFunc(strings.SplitAfter(string(data), "\n"),
			func(l string) bool { return strings.HasPrefix(l, "verified_at:") })
		out[filepath.Base(p)] = strings.Join(lines, "")
	}
	return out
}

// debris lists what nothing may leave behind once the folder was opened.
func (f kbFolder) debris() (left []string) {
	f.Helper()
	for _, pattern := range []string{"cards/*/.tmp-*", "cards/.index/change-*", "cards/.git/*.lock", "cards/.git/tmp_*", "cards/.git-new"} {
		found, err := filepath.Glob(filepath.Join(f.dir, pattern))
		if err != nil {
			f.Fatal(err)
		}
		left = append(left, found...)
	}
	return left
}

// newKBFolder holds four drafts and one more to add.
func newKBFolder(t *testing.T) kbFolder {
	t.Helper()
	need(t, exec.Command("git", "--version").Run() == nil, "git")
	f := kbFolder{t, t.TempDir()}
	for i := range 5 {
		text := fmt.Sprintf("---\ntype: knowledge_card\ntopic: lesson %d\nsource_task: t\nid: k%d\nstate: draft\ncreated: 2026-01-0%d\n---\n- **Issue**: trap number %d\n", i, i, i+1, i)
		if err := os.WriteFile(filepath.Join(f.dir, fmt.Sprintf("%d.md", i)), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.run("add", "0.md", "1.md", "2.md", "3.md")
	f.remote()
	return f
}

// remote makes a remote in which one card is changed, one is new, and one, that
// is changed here, says something else.
func (f kbFolder) remote() {
	f.Helper()
	if out, err := exec.Command("git", "clone", "-q", "--bare", filepath.Join(f.dir, "cards"), filepath.Join(f.dir, "remote.git")).CombinedOutput(); err != nil {
		f.Fatalf("git clone: %v\n%s", err, out)
	}
	other := kbFolder{f.TB, filepath.Join(f.TempDir(), "other")}
	if err := os.CopyFS(other.dir, os.DirFS(f.dir)); err != nil {
		f.Fatal(err)
	}
	for at, text := range map[kbFolder]string{f: "trap here", other: "trap there"} {
		path := filepath.Join(at.dir, "cards", "2026-01", "lesson-1-k1.md")
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if err := os.WriteFile(path, bytes.Replace(data, []byte("trap"), []byte(text), 1), 0o600); err != nil {
			f.Fatal(err)
		}
	}
	new := filepath.Join(other.dir, "new.md")
	if err := os.WriteFile(new, []byte("---\ntype: knowledge_card\ntopic: elsewhere\nsource_task: t\nid: n1\ncreated: 2026-01-09\n---\n- **Issue**: learned elsewhere\n"), 0o600); err != nil {
		f.Fatal(err)
	}
	other.run("add", "new.md")
	other.run("retire", "k0")
	other.run("sync", filepath.Join(f.dir, "remote.git"))
	f.run("approve", "k3")
}

// handEdit is what the history calls the one edit a user made.
const handEdit = "Edited by hand: lesson 1\n"

// indexedCards is enough for an index that is written down.
const indexedCards = 70

// fill adds cards until there are n.
func (f kbFolder) fill(n int) {
	f.Helper()
	add := []string{"add"}
	for i := len(f.cards()); i < n; i++ {
		name := fmt.Sprintf("more%d.md", i)
		text := fmt.Sprintf("---\ntype: knowledge_card\ntopic: word%d again\nsource_task: t\nid: m%d\ncreated: 2026-02-01\n---\n- **Issue**: word%d breaks word%d\n", i, i, i%7, i%11)
		if err := os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600); err != nil {
			f.Fatal(err)
		}
		add = append(add, name)
	}
	f.run(add...)
}

// freeRemote removes the locks that a git which served the remote has left
// there: it was killed, too, and says itself that a user has to remove them.
func (f kbFolder) freeRemote() {
	f.Helper()
	err := filepath.WalkDir(filepath.Join(f.dir, "remote.git"), func(path string, _ os.DirEntry, err error) error {
		if errors.Is(err, os.ErrNotExist) {
			return nil // before the remote is there
		}
		if err == nil && strings.HasSuffix(path, ".lock") {
			return os.Remove(path)
		}
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
}

// TestKillCards kills what changes the cards before each of its system calls
// that change something. What the next start finds is the old state or the
// new one, every card whole, the repository sound; and the verb, run again,
// ends where it would have.
func TestKillCards(t *testing.T) {
	heavy(t)
	t.Parallel()
	f := newKBFolder(t)
	kills := 0
	for _, verb := range [][]string{{"add", "4.md"}, {"approve", "k0", "k1"}, {"supersede", "k0", "k1", "k3"}, {"sync", "../remote.git"}, {"rebuild"}} {
		if verb[0] == "rebuild" {
			f.fill(indexedCards)
		}
		old := f.cards()
		whole := f.copy()
		_, total, _ := killedAt(t, whole.command(verb...), 0)
		want := whole.cards()
		ends := [2]int{}
		eachKill(total, killsOf(3, 200), func(at int) {
			kills++
			g := f.copy()
			_, _, last := killedAt(t, g.command(verb...), at)
			when := fmt.Sprintf("kb %s killed before call %d (%s)", verb[0], at, last)
			g.checkAfterKill(when, old, want, &ends)
			g.freeRemote()
			if len(g.checkAgain(when, verb)) > 0 && !maps.Equal(g.cards(), want) {
				t.Errorf("%s: run again, the cards are\n%q\nwant\n%q", when, g.cards(), want)
			}
		})
		t.Logf("kb %s: %d calls; %d ended old, %d new", verb[0], total, ends[0], ends[1])
		if !maps.Equal(old, want) && (ends[0] == 0 || ends[1] == 0) {
			t.Errorf("kb %s: ends %v: the kills do not reach its inside", verb[0], ends)
		}
	}
	if *nightly && kills < 300 {
		t.Errorf("%d kills, 300 are promised", kills)
	}
	t.Logf("%d kills, no card lost, none half", kills)
}

// checkAfterKill opens the folder and looks at what is there.
func (f kbFolder) checkAfterKill(when string, old, want map[string]string, ends *[2]int) {
	f.Helper()
	var list struct {
		Cards  []struct{ ID string }
		Broken []any
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(f.run("list", "--json")))).Decode(&list); err != nil {
		f.Fatalf("%s: %v", when, err)
	}
	now := f.cards()
	switch {
	case maps.Equal(now, want): // first: a verb may change no card
		ends[1]++
	case maps.Equal(now, old):
		ends[0]++
	default:
		f.Errorf("%s: neither old nor new:\n%q", when, now)
	}
	if len(list.Broken) > 0 || len(list.Cards) != len(now) {
		f.Errorf("%s: lists %d cards, broken %v", when, len(list.Cards), list.Broken)
	}
	if left := f.debris(); len(left) > 0 {
		f.Errorf("%s: left behind: %v", when, left)
	}
	f.git("fsck", "--strict")
}

// checkAgain runs the verb again, as far as it has not been carried out, and
// gives what it said; then the repository must be clean.
func (f kbFolder) checkAgain(when string, verb []string) string {
	f.Helper()
	out, err := f.command(verb...).CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("changed since this review was begun")) &&
		!bytes.Contains(out, []byte("the card is superseded")) {
		f.Errorf("%s: again: %v\n%s", when, err, out)
	}
	if verb[0] == "rebuild" {
		return string(out)
	}
	if status := f.git("status", "--porcelain"); status != "" {
		f.Errorf("%s: git status says %q", when, status)
	}
	log := strings.ReplaceAll(f.git("log", "--format=%s"), handEdit, "") // the one there was
	if strings.Contains(log, "Edited by hand") {
		f.Errorf("%s: the program's change is called a user's:\n%s", when, log)
	}
	return string(out)
}
