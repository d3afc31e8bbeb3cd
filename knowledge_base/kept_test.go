package knowledgebase

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/opstream/durable"
)

// aged opens a folder an hour later: the marks of its files prove what they hold.
func aged(t testing.TB, dir string, o *Options) *Store {
	t.Helper()
	if o == nil {
		o = new(Options)
	}
	o.Now = fixedNow
	s, err := open(dir, o, func() time.Time { return time.Now().Add(time.Hour) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// shippedFolder is a folder with more cards than it takes for them to be kept,
// written by somebody else: each third is reviewed.
func shippedFolder(t testing.TB, dir string) (paths []string) {
	t.Helper()
	month := filepath.Join(dir, day.Format("2006-01"))
	if err := os.MkdirAll(month, durable.DirMode); err != nil {
		t.Fatal(err)
	}
	for i := range 2 * folder.KeptFew {
		c := newCard(fmt.Sprintf("k%03d", i), fmt.Sprintf("topic: %d \"quoted\"", i), fmt.Sprintf("a lesson, number %d", i), "and\n\n```\nmore\n```")
		c.Tags, c.Contradicts, c.Generalizes = []string{"tag", fmt.Sprint(i)}, []string{"k000"}, []string{"k001"}
		c.Provenance = card.Provenance{Task: "t", JumpOp: uint64(i), Ranges: []card.Range{{First: 1, Last: uint64(i) + 1}}, Tainted: i%2 == 0}
		if i%3 == 0 {
			c.State, c.VerifiedAt = card.Reviewed, &day
		}
		paths = append(paths, filepath.Join(month, folder.FileName(c.Topic, c.ID)))
		if err := os.WriteFile(paths[i], c.Markdown(), durable.FileMode); err != nil {
			t.Fatal(err)
		}
	}
	return paths
}

// A card that is kept is the card its file gives, in all its fields.
func TestKeptCardsAreThoseOfTheFiles(t *testing.T) {
	dir := t.TempDir()
	shippedFolder(t, dir)
	read := aged(t, dir, nil)
	kept := read.folder.Kept()
	if len(kept) != len(read.cards) {
		t.Fatalf("%d of %d cards are kept", len(kept), len(read.cards))
	}
	again := aged(t, dir, nil)
	if !reflect.DeepEqual(again.contents, read.contents) {
		t.Error("opened from what is kept, the folder has another content")
	}
	for path, st := range kept {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(st.Card().Markdown()) != string(text) {
			t.Errorf("%s: kept as %q", path, st.Card().Markdown())
		}
	}
}

// A change by hand is seen whatever it leaves as it was; so is one that came
// before the marks of the file could tell it.
func TestChangesByHandAreSeen(t *testing.T) {
	edit := func(t *testing.T, path string) []byte {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(strings.Replace(string(text), "a lesson", "A LESSON", 1))
	}
	for name, change := range map[string]func(t *testing.T, path string) error{
		"in place, of the same length": func(t *testing.T, path string) error { return os.WriteFile(path, edit(t, path), durable.FileMode) },
		"with the time put back": func(t *testing.T, path string) error {
			was, err := os.Stat(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, edit(t, path), durable.FileMode); err != nil {
				return err
			}
			return os.Chtimes(path, was.ModTime(), was.ModTime())
		},
		"another file in its place": func(t *testing.T, path string) error {
			if err := os.WriteFile(path+".new", edit(t, path), durable.FileMode); err != nil {
				return err
			}
			return os.Rename(path+".new", path)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			paths := shippedFolder(t, dir)
			aged(t, dir, nil).Close()
			if err := change(t, paths[7]); err != nil {
				t.Fatal(err)
			}
			c, err := aged(t, dir, nil).Get("k007")
			if err != nil || !strings.HasPrefix(c.Issue[0], "A LESSON") {
				t.Errorf("the card says %q, %v", c.Issue, err)
			}
		})
	}
}

// A file added to a month is seen although the list of its files is cached.
func TestAddedFileIsSeen(t *testing.T) {
	dir := t.TempDir()
	paths := shippedFolder(t, dir)
	aged(t, dir, nil).Close()
	text := newCard("k999", "an added topic", "added").Markdown()
	if err := os.WriteFile(filepath.Join(filepath.Dir(paths[0]), "added-k999.md"), text, durable.FileMode); err != nil {
		t.Fatal(err)
	}
	if _, err := aged(t, dir, nil).Get("k999"); err != nil {
		t.Error(err)
	}
}

// What is too young for its marks to prove anything is not kept; what is gone
// is gone.
func TestYoungFilesAreNotKept(t *testing.T) {
	dir := t.TempDir()
	paths := shippedFolder(t, dir)
	if kept := openStore(t, dir).folder.Kept(); len(kept) != 0 {
		t.Errorf("%d files of just now are kept", len(kept))
	}
	aged(t, dir, nil).Close()
	if err := os.Remove(paths[3]); err != nil {
		t.Fatal(err)
	}
	if _, err := aged(t, dir, nil).Get("k003"); err == nil {
		t.Error("a card without its file was opened")
	}
}

// A few changes are read and not written down again; many are.
func TestKeptFileIsWrittenForMany(t *testing.T) {
	dir := t.TempDir()
	paths := shippedFolder(t, dir)
	aged(t, dir, nil).Close()
	path := filepath.Join(dir, indexDir, "cards.bin")
	for _, step := range []struct {
		touch   int
		written bool
	}{{1, false}, {folder.KeptFew, true}} {
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for i := range step.touch {
			if err := os.Chtimes(paths[i], day, day.Add(time.Duration(step.touch)*time.Second)); err != nil {
				t.Fatal(err)
			}
		}
		aged(t, dir, nil).Close()
		after, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if os.SameFile(before, after) == step.written {
			t.Errorf("%d files touched: written anew %v", step.touch, !step.written)
		}
	}
}

// What is kept of a shipped review is what the file says: whether it counts
// here is decided at each opening.
func TestKeptReviewsAreClaims(t *testing.T) {
	global, dir := t.TempDir(), t.TempDir()
	shippedFolder(t, dir)
	open := func() *Store {
		o := Options{}.ForProject(global)
		return aged(t, dir, o)
	}
	open().Close()
	state := func(s *Store, id string) card.State {
		c, err := s.Get(id)
		if err != nil {
			t.Fatal(err)
		}
		return c.State
	}
	s := open()
	if got := state(s, "k003"); got != card.Draft {
		t.Errorf("as shipped it is %s", got)
	}
	c := s.cards["k003"].Card()
	c.State = card.Reviewed
	if err := s.noteReviews([]planned{{card: c}}); err != nil {
		t.Fatal(err)
	}
	s = open()
	if got := state(s, "k003"); got != card.Reviewed {
		t.Errorf("reviewed here it is %s", got)
	}
	if got := state(s, "k006"); got != card.Draft {
		t.Errorf("another one is %s", got)
	}
	if kept := s.folder.Kept(); len(kept) != 2*folder.KeptFew {
		t.Errorf("%d cards are kept", len(kept))
	}
}
