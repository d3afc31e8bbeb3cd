package folder

import (
	"path/filepath"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// maxWatched is how many names of changed files are kept; of more, everything is
// looked at.
const maxWatched = 32

// Watch records where something happened in the folder. What it was is found out by
// looking, before the next answer.
type Watch struct {
	notify *fsnotify.Watcher // nil: the system watches nothing for us, and every answer looks
	ended  sync.WaitGroup

	mu    sync.Mutex
	names map[string]bool // paths
	all   bool            // anything may have changed
}

// StartWatch watches the folder and its months.
func StartWatch(dir string, months []string) *Watch {
	w := new(Watch)
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

// Changed returns the paths at which something may have happened since it was last
// asked; all, when that may be anywhere.
func (w *Watch) Changed() (names map[string]bool, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	names, all = w.names, w.all || w.notify == nil
	w.names, w.all = nil, false
	return names, all
}

// Record records that something happened at a path; "" for anywhere.
func (w *Watch) Record(path string) {
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
func (w *Watch) listen() {
	for {
		select {
		case e, ok := <-w.notify.Events:
			if !ok {
				return
			}
			if e.Has(fsnotify.Create) && IsMonth(filepath.Base(e.Name)) {
				// Gone again by now, or it cannot be watched: then its cards are seen
				// when something else changes.
				_ = w.notify.Add(e.Name)
			}
			w.Record(e.Name)
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.Record("")
		}
	}
}

// Close ends the watch.
func (w *Watch) Close() error {
	if w.notify == nil {
		return nil
	}
	err := w.notify.Close()
	w.ended.Wait()
	return err
}
