package page

import (
	"errors"
	"fmt"
	"sync"

	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// maxWatched is how many tasks stay open, so that a page that follows one reads only what is
// new. The least recently used one is closed.
const maxWatched = 8

type watches struct {
	tasks *session.Service
	mu    sync.Mutex
	open  []*watch // least recently used first
}

// watch is one open task. mu guards the fields below it.
type watch struct {
	tasks    *session.Service
	id       string
	mu       sync.Mutex
	follower *taskdir.Follower
	builder  *timeline.Builder
	restarts int    // how often operations were withdrawn
	last     uint64 // the last operation that was added
	end      error  // why reading stopped; nil at the end of a valid stream
	closed   bool
}

// acquire reads what is new of a task and returns it locked; the caller unlocks it. A fault of
// the stream is in end and is not returned as an error, but for operations that contradict one another.
func (ws *watches) acquire(id string) (*watch, error) {
	for {
		w, gone, err := ws.get(id)
		if gone != nil {
			gone.close() // outside the list's lock, since it waits for those who read the task
		}
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		if w.closed { // closed between the two locks
			w.mu.Unlock()
			continue
		}
		if !errors.Is(w.end, errImpossible) { // else the builder has half of an operation
			w.end = w.follower.Next(w.restart, w.add)
		}
		if errors.Is(w.end, errImpossible) {
			w.mu.Unlock()
			return nil, fmt.Errorf("%w. Another program may have written it; 'anamnesis doctor %s' looks closer",
				w.end, id)
		}
		if w.last == 0 && w.end == nil {
			w.end = fmt.Errorf("the task's stream is empty: it is only being made, or its program died at once")
		}
		return w, nil
	}
}

// get returns the watch of a task, opening it if necessary, and the one to be closed in its place.
func (ws *watches) get(id string) (w, gone *watch, err error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i, w := range ws.open {
		if w.id == id {
			ws.open = append(append(ws.open[:i:i], ws.open[i+1:]...), w)
			return w, nil, nil
		}
	}
	f, err := ws.tasks.Follow(id)
	if err != nil {
		return nil, nil, err
	}
	w = &watch{tasks: ws.tasks, id: id, follower: f, builder: new(timeline.Builder)}
	ws.open = append(ws.open, w)
	if len(ws.open) > maxWatched {
		gone, ws.open = ws.open[0], ws.open[1:]
	}
	return w, gone, nil
}

func (w *watch) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	_ = w.follower.Close() // a reader: nothing is lost
}

// errImpossible means that the lines of a stream are valid but its operations contradict one
// another.
var errImpossible = errors.New("the operations cannot follow one another")

func (w *watch) restart() {
	w.restarts++
	w.builder, w.last = new(timeline.Builder), 0
}

func (w *watch) add(o op.Op) error {
	if err := w.builder.Add(o); err != nil {
		return fmt.Errorf("%w: %w", errImpossible, err)
	}
	w.last = o.Seq
	return nil
}

// broken reports whether the stream cannot be continued.
func (w *watch) broken() bool {
	return errors.As(w.end, new(*opstream.CorruptError))
}

// damage describes a stream's fault and the remedy; "" if it has none.
func (w *watch) damage() string {
	var at *opstream.CorruptError
	switch {
	case w.end == nil:
		return ""
	case errors.As(w.end, &at):
		return fmt.Sprintf("The stream of this task is damaged in %s at byte %d, at operation %d: %s. What comes "+
			"before it is shown. Nothing was changed. Stop the task if it runs; 'anamnesis doctor %s' says what is "+
			"lost and how to save the rest.", at.File, at.Offset, at.Seq, at.Why, w.id)
	case errors.Is(w.end, opstream.ErrVersion):
		return fmt.Sprintf("%v. Use the program that wrote it, or a newer one.", w.end)
	}
	return fmt.Sprintf("The stream of this task cannot be read further: %v. 'anamnesis doctor %s' looks closer.", w.end,
		w.id)
}
