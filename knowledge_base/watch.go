package knowledgebase

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
)

// watch notes that something happened in the folder. What it was is found out
// by looking, before the next answer.
type watch struct {
	notify *fsnotify.Watcher // nil: the system watches nothing for us, and every answer looks
	dirty  atomic.Bool
	ended  sync.WaitGroup
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

// changed reports whether something may have happened since it was last asked.
func (w *watch) changed() bool { return w.dirty.Swap(false) || w.notify == nil }

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
			w.dirty.Store(true)
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.dirty.Store(true)
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
	if s.watch == nil || !s.watch.changed() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.refresh(); err != nil {
		s.watch.dirty.Store(true)
		return fmt.Errorf("look at the changes in %s: %w", s.dir, err)
	}
	return nil
}

// refresh reads the files whose marks changed and brings the index along. The
// write lock is held.
func (s *Store) refresh() error {
	known := make(map[string]*stored, len(s.cards))
	for _, st := range s.cards {
		known[st.path] = st
	}
	now, err := s.scan(context.Background(), known)
	if err != nil {
		return err
	}
	if s.index != nil {
		for id := range s.cards {
			if now.cards[id] == nil {
				s.index.Remove(id)
			}
		}
		for id, st := range now.cards {
			if s.cards[id] == nil || s.cards[id].sum != st.sum {
				enter(s.index, st)
			}
		}
	}
	s.contents = now
	return nil
}
