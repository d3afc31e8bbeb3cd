//go:build unix

// Package feed brings a task's callbacks to the screen, in order.
package feed

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

// tailBytes is how much of a running command's output can be shown.
const tailBytes = 4 << 10

// Feed queues a task's events for the screen. A callback of the task appends to it and does
// not wait for the screen.
type Feed struct {
	done chan struct{}

	mu    sync.Mutex
	queue []any
	wake  chan struct{}
	tails map[string]string // of running calls, by id
}

func New() *Feed {
	return &Feed{done: make(chan struct{}), wake: make(chan struct{}, 1), tails: make(map[string]string)}
}

// Added is sent when the feed holds something.
type Added struct{}

// Start sends [Added] after each addition, until Stop.
func (f *Feed) Start(send func(tea.Msg)) {
	go func() {
		for {
			select {
			case <-f.wake:
				send(Added{})
			case <-f.done:
				return
			}
		}
	}()
}

func (f *Feed) Stop() { close(f.done) }

func (f *Feed) Done() <-chan struct{} { return f.done }

func (f *Feed) Add(m any) {
	f.mu.Lock()
	f.queue = append(f.queue, m)
	f.mu.Unlock()
	// One pending signal is enough, since Drain takes all. A callback must not wait until the screen reads it.
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Drain returns what was added since the last call.
func (f *Feed) Drain() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue
	f.queue = nil
	return q
}

// Print appends to a running call's output.
func (f *Feed) Print(call string, p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.tails[call] + string(p)
	f.tails[call] = text[max(0, len(text)-tailBytes):]
}

// Tail is the end of a running call's output.
func (f *Feed) Tail(call string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tails[call]
}

// Forget drops the output of a call that has ended.
func (f *Feed) Forget(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tails, call)
}

// Turns counts the commands that run in the task, so that Leave can wait for them.
type Turns struct {
	mu   sync.Mutex
	left bool
	n    sync.WaitGroup
}

// Running returns a command that Leave waits for. After Leave it does nothing.
func (t *Turns) Running(do tea.Cmd) tea.Cmd {
	return func() tea.Msg {
		t.mu.Lock()
		if t.left {
			t.mu.Unlock()
			return nil
		}
		t.n.Add(1)
		t.mu.Unlock()
		defer t.n.Done()
		return do()
	}
}

// Leave waits until nothing runs. After it, Running's commands do nothing.
func (t *Turns) Leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
	t.n.Wait()
}
