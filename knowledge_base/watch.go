package knowledgebase

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"

	"anamnesis/knowledge_base/internal/disk"
)

// maxWatched is how many names of changed files are kept; of more, everything is
// looked at.
const maxWatched = 32

// watch notes where something happened in the folder. What it was is found out
// by looking, before the next answer.
type watch struct {
	notify *fsnotify.Watcher // nil: the system watches nothing for us, and every answer looks
	ended  sync.WaitGroup

	mu    sync.Mutex
	names map[string]bool // paths
	all   bool            // anything may have changed
}

// startWatch watches the folder and its months.
func startWatch(dir string, months []string) *watch {
	w := new(watch)
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return w
	}
	for _, d := range append([]string{"."}, months...) {
		if n.Add(filepath.Join(dir, d)) != nil {
			_ = n.Close() // nothing was asked of it yet
			return w
		}
	}
	w.notify = n
	w.ended.Go(w.listen)
	return w
}

// changed returns the paths at which something may have happened since it was last
// asked; all, when that may be anywhere.
func (w *watch) changed() (names map[string]bool, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, all = w.names, w.all || w.notify == nil
	w.names, w.all = nil, false
	return names, all
}

// note books that something happened at a path; "" for anywhere.
func (w *watch) note(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if path == "" || len(w.names) == maxWatched {
		w.names, w.all = nil, true
	}
	if w.all {
		return
	}
	if w.names == nil {
		w.names = make(map[string]bool)
	}
	w.names[path] = true
}

// listen takes events until the watcher is closed. A queue that ran over is
// an event like any other: everything is looked at in any case.
func (w *watch) listen() {
	for {
		select {
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) && isMonth(filepath.Base(e.Name)) {
				// Gone again by now, or it cannot be watched: then its cards are seen
				// when something else changes.
				_ = w.notify.Add(e.Name)
			}
			w.note(e.Name)
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.note("")
		}
	}
}

func (w *watch) close() error {
	if w.notify == nil {
		return nil
	}
	err := w.notify.Close()
	w.ended.Wait()
	return err
}

// freshen takes in what others changed in a watched folder. No lock is held.
func (s *Store) freshen() error {
	if s.watch == nil {
		return nil
	}
	names, all := s.watch.changed()
	if !all && len(names) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if !all && s.ours(names) {
		return nil
	}
	if err := s.refresh(); err != nil {
		s.watch.note("")
		return fmt.Errorf("look at the changes in %s: %w", s.dir, err)
	}
	return nil
}

// ours reports whether all that happened at some paths was this process writing
// cards, which are in memory as they are there. The write lock is held.
func (s *Store) ours(names map[string]bool) bool {
	if filepath.Dir(s.opts.reviews) != filepath.Clean(s.dir) {
		return false // what counts as reviewed is read anew with the cards
	}
	for path := range names {
		if strings.HasPrefix(filepath.Base(path), disk.TempMark) {
			continue
		}
		st := s.cardAt(path)
		if st == nil || !s.unchanged(st) {
			return false
		}
	}
	return true
}

// cardAt returns the card whose file is at a path and has the name that was made
// for it, with its id at the end; nil where there is none.
func (s *Store) cardAt(path string) *stored {
	for rest := strings.TrimSuffix(filepath.Base(path), ".md"); ; {
		var dash bool
		if _, rest, dash = strings.Cut(rest, "-"); !dash {
			return nil
		}
		if st := s.cards[rest]; st != nil && st.path() == path {
			return st
		}
	}
}

// refresh reads the files whose marks changed and brings the index along. The
// write lock is held.
func (s *Store) refresh() error {
	known := make(map[string]*stored, len(s.cards))
	for _, st := range s.cards {
		known[st.path()] = st
	}
	now, _, err := s.scan(context.Background(), known)
	if err != nil {
		return err
	}
	for id := range s.cards {
		if now.cards[id] != nil {
			continue
		}
		s.clean = "" // that commit has it still, and the cards that are left do not say so
		if s.index != nil {
			s.index.Remove(id)
		}
	}
	if s.index != nil {
		for id, st := range now.cards {
			if s.cards[id] == nil || s.cards[id].sum != st.sum {
				enter(s.index, st)
			}
		}
	}
	s.contents = now
	return nil
}
