package folder

import (
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/fsnotify/fsnotify"
)

// Watch records whether something happened in the folder. What it was is found out by
// reading the files, before the next answer.
type Watch struct {
	notify *fsnotify.Watcher // nil: the system watches nothing for us, and every answer reads the files
	ended  sync.WaitGroup

	changed atomic.Bool
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

// Changed reports whether something may have happened since it was last asked.
func (w *Watch) Changed() bool { return w.changed.Swap(false) || w.notify == nil }

// Record records that something happened.
func (w *Watch) Record() { w.changed.Store(true) }

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
			w.Record()
		case _, ok := <-w.notify.Errors:
			if !ok {
				return
			}
			w.Record()
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
