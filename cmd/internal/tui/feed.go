//go:build unix

package tui

import (
	"sync"

	tea "charm.land/bubbletea/v2"
)

// tailBytes is how much of a running command's output is kept to be shown.
const tailBytes = 4 << 10

// feed queues a task's events for the screen, in order. A callback of the task appends to
// it and does not wait for the screen.
type feed struct {
	done chan struct{} // closed when the screen has ended

	mu    sync.Mutex
	queue []any
	wake  chan struct{}
	tails map[string]string // of running calls, by id
}

func newFeed() *feed {
	return &feed{done: make(chan struct{}), wake: make(chan struct{}, 1), tails: make(map[string]string)}
}

// start sends a feedMsg after each addition, until stop.
func (f *feed) start(send func(tea.Msg)) {
	go func() {
		for {
			select {
			case <-f.wake:
				send(feedMsg{})
			case <-f.done:
				return
			}
		}
	}()
}

func (f *feed) stop() { close(f.done) }

func (f *feed) add(m any) {
	f.mu.Lock()
	f.queue = append(f.queue, m)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// take returns what was added since the last call.
func (f *feed) take() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queue
	f.queue = nil
	return q
}

// print appends to a running call's output.
func (f *feed) print(call string, p []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := f.tails[call] + string(p)
	f.tails[call] = text[max(0, len(text)-tailBytes):]
}

// tail is the end of a running call's output.
func (f *feed) tail(call string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tails[call]
}

// forget drops the output of a call that has ended.
func (f *feed) forget(call string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.tails, call)
}

// turns counts the commands that run in the task, so that leave can wait for them.
type turns struct {
	mu   sync.Mutex
	left bool
	n    sync.WaitGroup
}

// running returns a command that leave waits for. After leave it does nothing.
func (t *turns) running(do tea.Cmd) tea.Cmd {
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

// leave waits until nothing runs. After it, running's commands do nothing.
func (t *turns) leave() {
	t.mu.Lock()
	t.left = true
	t.mu.Unlock()
	t.n.Wait()
}
