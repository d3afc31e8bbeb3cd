//go:build unix

// Package tui is the interactive terminal: a session that stays open after an answer. It
// draws below the terminal's own scrollback and prints finished output into it. One goroutine
// owns all state; the task's callbacks reach it through a feed.
package tui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/notify"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/ask"
	"anamnesis/cmd/internal/tui/feed"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/worldstate"
)

// Options configure a session at the terminal.
type Options struct {
	Service *session.Service
	Request session.Request // of new tasks
	// Settings hold for a task that is resumed, beside its own.
	Settings session.Settings
	Task     string // to continue; if empty, the first request starts a new one
	Text     string // the first request; with Task it may be empty
	Once     bool   // the program ends with the first turn
	Pick     bool   // begin with the list of tasks
	Theme    string // auto, dark, light or none
	Version  string
	In, Out  *os.File
	Notify   *notify.Notifier
}

// Result is how the session ended.
type Result struct {
	Task string          // empty: none was started
	Last runtime.Outcome // of the last turn
	Ran  bool            // there was a turn
	Err  error           // of the last turn, or why it could not begin
}

// Run shows the session until the user leaves or ctx ends. If the terminal is lost, the turn
// ends after the running call.
func Run(ctx context.Context, o Options) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f := feed.New()
	m := newScreen(ctx, o, f)
	p := tea.NewProgram(m, tea.WithInput(o.In), tea.WithOutput(m.frame), tea.WithoutSignalHandler(),
		tea.WithFilter(func(_ tea.Model, msg tea.Msg) tea.Msg {
			if size, ok := msg.(tea.WindowSizeMsg); ok {
				return m.present(size)
			}
			return msg
		}))
	f.Start(p.Send)
	stop := context.AfterFunc(ctx, func() { p.Send(lostMsg{}) })
	defer stop()
	_, err := p.Run()
	f.Stop() // ends open questions, whose calls would wait for ever
	lost := err != nil && !errors.Is(err, tea.ErrInterrupted)
	if lost {
		cancel(notice.ErrLost)
		m.turns.Leave() // no caller reads the turn's last message now, so its end is waited for here
		m.unsent()
	}
	r := m.result
	r.Task = m.o.Task
	if m.s != nil {
		r.Err = session.JoinClose(r.Err, m.s.Close())
	}
	if len(m.out) > 0 { // nothing is drawn any more
		fmt.Fprintln(o.Out, m.waiting())
	}
	switch {
	case lost:
		err = fmt.Errorf("%w: 'anamnesis -c' continues the task: %w", notice.ErrLost, context.Canceled)
	case err != nil:
		err = fmt.Errorf("left before what was running had ended: 'anamnesis -c' continues the task: %w",
			context.Canceled)
	}
	return r, err
}

// client returns the callbacks that show a task on the screen.
func (m *screen) client() session.Client {
	f := m.feed
	outage := session.SessionPatience
	if m.o.Once {
		outage = session.DefaultPatience
	}
	return m.o.Notify.Watch(session.Client{
		Patience: outage,
		Callbacks: session.Callbacks{
			Op:       func(o op.Op) { f.Add(o) },
			Delta:    func(d model.Delta) { f.Add(d) },
			Progress: func(c op.Call, text string) { f.Add(progressMsg{c.ID, text}) },
			Output:   func(c op.Call, p []byte) { f.Print(c.ID, p) },
			Editing:  func(c op.Call, changes []file.Change) { f.Add(editingMsg{c.ID, changes}) },
			Passing:  func(op.PassBegun) { f.Add(noteMsg("asking the model what to keep of these steps")) },
			Queued:   func() string { return m.queue.With(m.queue.Drain()) },
			Approve: func(ctx context.Context, q gate.Question) gate.Answer {
				a, _ := m.put(ctx, &ask.Question{Kind: ask.OfCall, Call: q})
				return a
			},
			Ask: func(ctx context.Context, text string) (string, bool) {
				a, ok := m.put(ctx, &ask.Question{Kind: ask.OfText, Text: text})
				return a.Text, ok && a.Text != ""
			},
		},
		Started: func(i session.Info) {
			st, err := m.o.Service.State(i.Task)
			if err != nil { // a new task
				st = new(state.State)
			}
			f.Add(startedMsg{i, st})
		},
		Retry: func(at model.Attempt) { f.Add(retryMsg(at)) },
		Scan:  func(p worldstate.Progress) { f.Add(p) },
		Note:  func(text string) { f.Add(warnMsg(text)) },
		Trust: func(ctx context.Context, text string) bool {
			a, _ := m.put(ctx, &ask.Question{Kind: ask.OfTrust, Text: text})
			return a.Allow
		},
	})
}

// put shows a question and waits for its answer. If the context or the terminal ends first,
// ok is false.
func (m *screen) put(ctx context.Context, q *ask.Question) (a gate.Answer, ok bool) {
	q.Answer = make(chan gate.Answer, 1)
	m.feed.Add(q)
	select {
	case a = <-q.Answer:
		return a, true
	case <-ctx.Done():
	case <-m.feed.Done():
	}
	m.feed.Add(withdrawMsg{q})
	return gate.Answer{}, false
}

// Messages of the task, in the order in which they happened.
type (
	startedMsg struct {
		session.Info
		st *state.State // before it continues
	}
	progressMsg struct{ call, text string }
	editingMsg  struct {
		call    string
		changes []file.Change
	}
	noteMsg     string
	warnMsg     string
	retryMsg    model.Attempt
	withdrawMsg struct{ q *ask.Question }
)

// Messages of the program to itself.
type (
	lostMsg   struct{} // a signal, or the terminal is gone
	tickMsg   time.Time
	openedMsg struct {
		s   *session.Session
		err error
	}
	turnMsg struct {
		out runtime.Outcome
		err error
	}
	textMsg   struct{ text string } // to print
	errorMsg  struct{ err error }
	closedMsg struct{ err error }
)

// clean returns a text without what could act on a terminal.
func clean(s string) string { return term.Clean(s) }

// say shows a hint for a moment.
func (m *screen) say(text string) { m.hint, m.hinted = text, m.now }

// joined returns two texts as paragraphs of one.
func joined(a, b string) string { return strings.TrimSpace(a + "\n\n" + b) }

// quit ends the program once nothing runs and everything is printed.
func (m *screen) quit() tea.Cmd {
	m.leaving = true
	if m.running || m.opening {
		if m.ctx.Err() == nil { // otherwise its own cause ends the turn
			m.cancel()
		}
		return nil
	}
	if text := m.unsent(); text != "" {
		m.print(paint.Faint.Render("not sent, kept in the history: ") + clean(text))
	}
	if m.o.Task != "" && !m.o.Once {
		again := "'anamnesis -c' continues it"
		if last, err := m.o.Service.LastOwnTask(m.o.Request.Dir); err != nil || last != m.o.Task {
			again = "'anamnesis -r' lists it"
		}
		if m.o.Request.Worktree != nil {
			again = "'anamnesis resume " + m.o.Task + "' continues it"
		}
		m.print(paint.Faint.Render("task " + m.o.Task + " · " + again))
	}
	return tea.Quit
}

// unsent adds text that was typed and not sent to the history, and returns it.
func (m *screen) unsent() string {
	text := joined(m.queue.Drain(), m.edit.Text())
	if text != "" {
		m.edit.Remember(text)
	}
	return text
}
