package page

import (
	"errors"
	"fmt"
	"sync"

	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// maxWatched is how many tasks are kept read, so that a page that follows one
// reads only what is new. The one that was not asked for the longest goes.
const maxWatched = 8

// watches are the tasks that pages look at.
type watches struct {
	tasks listing
	mu    sync.Mutex
	open  []*watch // the one asked for last at the end
}

// watch is one task as far as it was read. Who uses its fields holds mu.
type watch struct {
	tasks    listing
	id       string
	mu       sync.Mutex
	follower *taskdir.Follower
	builder  *timeline.Builder
	restarts int    // how often what was read was taken back
	last     uint64 // the last operation that was added
	end      error  // why nothing is read past it; nil at the end of a sound stream
	closed   bool
}

// look returns a task with all that can be read of it now, locked: the caller
// unlocks it. What is wrong with a stream is in its end, and no error.
func (ws *watches) look(id string) (*watch, error) {
	for {
		w, err := ws.get(id)
		if err != nil {
			return nil, err
		}
		w.mu.Lock()
		if w.closed { // gone to make room, between the two locks
			w.mu.Unlock()
			continue
		}
		w.end = w.read()
		if w.last == 0 && w.end == nil {
			w.end = fmt.Errorf("the task's stream is empty: it is only being made, or its program died at once")
		}
		return w, nil
	}
}

// get finds the watch of a task, or makes it.
func (ws *watches) get(id string) (*watch, error) {
	w, gone, err := ws.take(id)
	if gone != nil {
		gone.close() // may wait for a reader
	}
	return w, err
}

// take also returns the watch that has to make room.
func (ws *watches) take(id string) (w, gone *watch, err error) {
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

// errImpossible is the end of a stream whose lines are sound and whose
// operations cannot follow one another.
var errImpossible = errors.New("the operations cannot follow one another")

// read takes in what is new.
func (w *watch) read() error {
	if errors.Is(w.end, errImpossible) {
		return w.end
	}
	err := w.follower.Next(w.restart, w.add)
	if !errors.Is(err, errImpossible) {
		return err
	}
	// The builder took half of an operation: it is made anew, up to there.
	good := w.last
	fresh := new(timeline.Builder)
	f, again := w.tasks.Follow(w.id)
	if again != nil {
		return again
	}
	defer f.Close()
	_ = f.Next(func() {}, func(o op.Op) error {
		if o.Seq > good {
			return errImpossible
		}
		return fresh.Add(o)
	})
	w.builder = fresh
	return err
}

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

// broken reports whether the stream is one that no program continues.
func (w *watch) broken() bool {
	var at *opstream.CorruptError
	return errors.As(w.end, &at) || errors.Is(w.end, errImpossible)
}

// damage says what is wrong with a stream and what can be done; "" where it is
// sound.
func (w *watch) damage() string {
	var at *opstream.CorruptError
	switch {
	case w.end == nil:
		return ""
	case errors.As(w.end, &at):
		return fmt.Sprintf("The stream of this task is damaged in %s at byte %d, at operation %d: %s. What comes before it is shown. "+
			"Nothing was changed. Stop the task if it runs; 'anamnesis doctor %s' says what is lost and how to save the rest.", at.File, at.Offset, at.Seq, at.Why, w.id)
	case errors.Is(w.end, errImpossible):
		return fmt.Sprintf("%v. What comes before it is shown. Another program may have written it; 'anamnesis doctor %s' looks closer.", w.end, w.id)
	case errors.Is(w.end, opstream.ErrVersion):
		return fmt.Sprintf("%v. Use the program that wrote it, or a newer one.", w.end)
	}
	return fmt.Sprintf("The stream of this task cannot be read further: %v. 'anamnesis doctor %s' looks closer.", w.end, w.id)
}
