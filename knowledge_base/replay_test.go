package knowledgebase

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/opstream/durable"
)

// syncedFS records what each directory held when it was synced last.
type syncedFS struct {
	durable.OS
	dirs map[string]map[string][]byte // directory, path, content
	fail string                       // the next sync of this directory fails, after it took place
}

func (f *syncedFS) SyncDir(dir string) error {
	paths, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	f.dirs[dir] = make(map[string][]byte)
	for _, path := range paths {
		if f.dirs[dir][path], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	if dir == f.fail {
		f.fail = ""
		return errFault
	}
	return f.OS.SyncDir(dir)
}

// cutPower brings back the files that were removed since their directory was synced last.
func (f *syncedFS) cutPower(t *testing.T) {
	t.Helper()
	for _, files := range f.dirs {
		for path, data := range files {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err := os.WriteFile(path, data, durable.FileMode); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// removalPending returns a store in dir with the cards k1 and k2, and with the intent of a dead writer that removes k1,
// whose file is at path.
func removalPending(t *testing.T, dir string) (s *Store, fsys *syncedFS, path string) {
	t.Helper()
	s, fsys = personStore(t, dir), &syncedFS{dirs: make(map[string]map[string][]byte)}
	s.fs = fsys
	path = mustPut(t, s, newCard("k1", "uploads stop at two megabytes", "the proxy refuses larger bodies"))
	mustPut(t, s, newCard("k2", "another", "first of another"))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rel, err := filepath.Rel(s.dir, path)
	if err != nil {
		t.Fatal(err)
	}
	in := intent.New(s.folder.Index, s.Now())
	in.Message, in.Author = "Remove a card", s.person()
	in.Put(filepath.ToSlash(rel), data, nil)
	if err := in.Write(s.fs); err != nil {
		t.Fatal(err)
	}
	return s, fsys, path
}

// putInMay puts a card whose file is in another directory than those of removalPending.
func putInMay(t *testing.T, s *Store, id string) {
	t.Helper()
	c := newCard(id, "the topic "+id, "the lesson "+id)
	c.Created = c.Created.AddDate(0, 4, 0)
	mustPut(t, s, c)
}

// A card that a dead writer's change removes does not come back by a power cut after the change was completed, whether
// the file was removed before that writer died or when the change was completed.
func TestRemovalSurvivesPowerCut(t *testing.T) {
	for name, removed := range map[string]bool{"removed at completion": false, "removed before": true} {
		t.Run(name, func(t *testing.T) {
			s, fsys, path := removalPending(t, t.TempDir())
			if removed {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
			putInMay(t, s, "k3")
			fsys.cutPower(t)
			again := personStore(t, s.dir)
			putInMay(t, again, "k4")
			if _, err := again.Get("k1"); !errors.Is(err, ErrNotFound) {
				t.Errorf("the removed card is back: %v", err)
			}
			list := subjects(t, s.dir)
			if strings.Contains(strings.Join(list, "\n"), "by hand") || !slices.Contains(list, "Ada: Remove a card") {
				t.Errorf("the history is %q", list)
			}
		})
	}
}

// A card whose put failed, and was taken back, does not come back by a power cut.
func TestFailedPutSurvivesPowerCut(t *testing.T) {
	s, fsys, _ := removalPending(t, t.TempDir())
	putInMay(t, s, "k3")
	fsys.fail = filepath.Join(s.dir, "2026-05")
	c := newCard("k4", "a topic of its own", "a lesson of its own")
	c.Created = c.Created.AddDate(0, 4, 0)
	if _, _, err := s.Put(t.Context(), c); !errors.Is(err, errFault) {
		t.Fatalf("the put returns %v, want the fault", err)
	}
	fsys.cutPower(t)
	if _, err := personStore(t, s.dir).Get("k4"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the card is back: %v", err)
	}
}

// A card that completing a dead writer's change removes is gone from memory: it is neither read nor found, and its
// lesson can be stored again. A file that could not be read and is removed is no longer listed.
func TestRemovalLeavesMemory(t *testing.T) {
	t.Chdir(t.TempDir())
	s, _, _ := removalPending(t, ".")
	if err := s.Rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	query := Query{Text: "uploads stop at two megabytes"}
	if hits, err := s.Search(t.Context(), query); err != nil || !slices.Equal(ids(hits), []string{"k1"}) {
		t.Fatalf("before: %v, %v", ids(hits), err)
	}
	putInMay(t, s, "k3")
	if _, err := s.Get("k1"); !errors.Is(err, ErrNotFound) {
		t.Errorf("the removed card is read: %v", err)
	}
	if hits, err := s.Search(t.Context(), query); err != nil || len(hits) > 0 {
		t.Errorf("found %v, %v", ids(hits), err)
	}
	if list := s.List(); len(list) != 2 {
		t.Errorf("listed: %+v", list)
	}
	broken := filepath.Join(s.dir, "2026-01", "broken.md")
	err := errors.Join(os.WriteFile(broken, []byte("no card\n"), durable.FileMode), s.Rebuild(t.Context()))
	if list := s.Broken(); err != nil || len(list) != 1 {
		t.Fatalf("before: %v, %v", list, err)
	}
	in := intent.New(s.folder.Index, s.Now())
	in.Put("2026-01/broken.md", []byte("no card\n"), nil)
	if err := in.Write(s.fs); err != nil {
		t.Fatal(err)
	}
	putInMay(t, s, "k4")
	if list := s.Broken(); len(list) > 0 {
		t.Errorf("still listed: %v", list)
	}
	if _, created, err := s.Put(t.Context(), newCard("k5", "uploads stop at two megabytes",
		"the proxy refuses larger bodies")); err != nil || !created {
		t.Errorf("the lesson again: created %v, %v", created, err)
	}
}
