//go:build unix

package tui

import (
	"context"
	"errors"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/ask"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/feed"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/worldstate"
)

const (
	tickEvery = 100 * time.Millisecond // while something runs
	hintFor   = 2 * time.Second        // how long a second Esc or Ctrl-C counts as one
)

// screen is the state of the terminal. Only the program's goroutine uses it, but for
// feed and ctx.
type screen struct {
	scrollback
	o    Options
	ctx  context.Context // of the program: the methods of tea.Model take none
	feed *feed.Feed

	// Of the task.
	s       *session.Session // nil: none is open
	opening bool             // one is being opened
	info    session.Info
	fresh   bool         // the task was new when it was opened
	known   bool         // the next opening prints no heading: the user has seen it
	st      *state.State // folded from what was seen
	running bool
	ending  bool // the user interrupts the turn
	cancel  context.CancelFunc
	begun   time.Time
	asking  string // the request that opens the task
	turn    turn
	turns   feed.Turns
	result  Result

	// What is shown.
	edit      editor.Editor
	queue     editor.Outbox // messages that wait for the next request
	questions []*ask.Question
	held      *tea.KeyPressMsg // an answer, until ask.HoldTime has passed
	wrote     time.Time        // when a text was typed last
	unknown   string           // a line that is no command; entered again it is text
	pick      *picker
	plan      string // the agent's, which waits to be accepted
	reply     reply
	calls     []*call
	words     words
	activity  string // the operation that takes long now
	hint      string
	hinted    time.Time
	now       time.Time
	ticking   bool
	leaving   bool
	moded     bool    // the user chose a mode since the last request
	mine      []*call // what runs now with !, at most one
	stop      func()  // ends it; nil: nothing runs
}

func newScreen(ctx context.Context, o Options, f *feed.Feed) *screen {
	m := &screen{scrollback: newScrollback(o.Out, o.Theme), o: o, ctx: ctx, feed: f,
		now: time.Now()}
	m.setState(new(state.State))
	m.words.reset(o.Request.Dir)
	m.edit = editor.New(editor.OpenHistory(o.Service.Home.State, o.Request.Dir), o.Request.Dir,
		offered(o.Service.Skills(o.Request.Dir)))
	return m
}

// setState shows a task, or a new one, in the mode in which it is opened next.
func (m *screen) setState(st *state.State) {
	m.plan = ""
	if m.st = st; m.o.Settings.Plan != nil {
		st.Grants.Plan = *m.o.Settings.Plan
	}
}

func (m *screen) Init() tea.Cmd {
	var cmds []tea.Cmd
	if (m.o.Theme == "" || m.o.Theme == "auto") && m.theme != "none" {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	switch {
	case m.o.Pick:
		m.greet()
		cmds = append(cmds, m.pickTask())
	case m.o.Text == "" && !m.o.Once && m.waits():
		m.greet()
		cmds = append(cmds, m.switchTo(m.o.Task))
	case m.o.Task != "" || m.o.Text != "":
		m.printRequest(m.o.Text)
		cmds = append(cmds, m.begin(m.o.Text))
	default:
		m.greet()
	}
	return tea.Batch(cmds...)
}

func (m *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	m.now = time.Now()
	m.frame.Ready()
	cmd := m.handle(msg)
	m.flush(m.now)
	return m, tea.Batch(cmd, m.tick())
}

func (m *screen) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.resize(msg.Width, msg.Height, m.now)
	case tea.BackgroundColorMsg:
		if m.theme = "light"; msg.IsDark() {
			m.theme = "dark"
		}
	case pastedMsg:
		m.edit.Paste(string(msg) + " ")
	case tea.PasteMsg:
		if q := m.question(); q == nil || !q.Paste(msg.Content, m.now) {
			m.edit.Paste(msg.Content)
		}
	case tea.KeyPressMsg:
		return m.key(msg)
	case feed.Added:
		m.happened()
	case tickMsg:
		if m.ticking = false; m.now.Sub(m.hinted) >= hintFor {
			m.hint = ""
		}
	case openedMsg:
		return m.opened(msg)
	case turnMsg:
		return m.turnEnded(msg)
	// A signal came, or the terminal is gone: no user can answer any more.
	case lostMsg:
		return m.quit()
	case textMsg:
		m.print(msg.text)
	case errorMsg:
		m.fail(msg.err)
	case pickedMsg:
		m.pick = msg.pick
	case stepsMsg:
		m.summary(msg)
	case planMsg:
		m.confirmJump(msg)
	case settledMsg:
		return m.settled(msg)
	case closedMsg:
		m.s = nil
		if msg.err != nil {
			m.fail(msg.err)
		}
	case doneMsg:
		m.opening, m.activity = false, ""
		m.unhint()
		m.happened()
		if msg.err != nil {
			m.fail(msg.err)
		} else if msg.text != "" {
			m.print(paint.Faint.Render(msg.text))
		}
	case callEditedMsg:
		if slices.Contains(m.questions, msg.q) && msg.q.Edited(msg.name, msg.text, msg.err) {
			m.answered(msg.q)
		}
	case planEditedMsg:
		return m.planEdited(msg)
	case shellMsg:
		m.shellEnded(msg)
	}
	return nil
}

// tick redraws the screen at intervals while something runs.
func (m *screen) tick() tea.Cmd {
	q := m.question()
	if m.ticking || !(m.running || m.opening || m.resizing(m.now) || m.stop != nil || m.hint != "" || len(m.out) > 0 ||
		q != nil && !q.Armed(m.now)) {
		return nil
	}
	m.ticking = true
	return tea.Tick(tickEvery, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// question returns the question that waits for the user, or nil.
func (m *screen) question() *ask.Question {
	if len(m.questions) == 0 {
		return nil
	}
	return m.questions[0]
}

func (m *screen) happened() {
	for _, e := range m.feed.Drain() {
		switch e := e.(type) {
		case op.Op:
			m.apply(e)
		case model.Delta:
			m.delta(e)
		case startedMsg:
			m.started(e)
		case progressMsg:
			if c := m.call(e.call); c != nil {
				c.progress = e.text
			} else { // a check of the task's goal
				m.activity = e.text
			}
		case editingMsg:
			m.ensureCall(e.call).changes = e.changes
		case noteMsg:
			m.activity = string(e)
		case warnMsg:
			m.print(paint.Yellow.Render("! " + clean(string(e))))
		case retryMsg:
			m.print(paint.Yellow.Render(m.words.retry(model.Attempt(e))))
		case worldstate.Progress:
			m.activity = scanText(e)
		case *ask.Question:
			m.questions = append(m.questions, e)
			m.asked()
		case withdrawMsg:
			m.questions = slices.DeleteFunc(m.questions, func(q *ask.Question) bool { return q == e.q })
			m.asked()
		}
	}
}

// asked prepares the question that is shown now.
func (m *screen) asked() {
	q := m.question()
	if q == nil {
		return
	}
	if c := m.call(q.Call.ID); c != nil {
		q.Changes = c.changes
	}
	if q.Open(m.now, m.wrote) {
		m.held = nil
	}
}

// begin opens the task, or a new one, with a request, and runs a turn.
func (m *screen) begin(text string) tea.Cmd {
	m.opening, m.begun, m.result.Err, m.asking, m.moded = true, m.now, nil, text, false
	m.activity, m.fresh = "opening", m.o.Task == ""
	ctx, cancel := context.WithCancel(m.ctx)
	m.cancel = cancel
	svc, c, task := m.o.Service, m.client(), m.o.Task
	r, set := m.o.Request, m.o.Settings
	r.Text = text
	return m.turns.Running(func() tea.Msg {
		if task == "" {
			s, err := svc.Start(ctx, r, c)
			return openedMsg{s, err}
		}
		s, err := svc.Resume(ctx, task, text, set, c)
		return openedMsg{s, err}
	})
}

func (m *screen) started(e startedMsg) {
	m.info, m.st = e.Info, e.st
	m.o.Task = e.Task
	m.o.Request.Goal, m.o.Settings.Goal = nil, nil // the task has it
	m.o.Settings.Remote.Detach = false             // the task is the detached copy now
	m.words.reset(e.Dir)
	m.turn = turn{usage: m.st.Totals.Usage, cards: m.st.Totals.CardsWritten} // the request may be an earlier one
	if !m.known {
		m.heading()
	}
	m.known = false
}

func (m *screen) opened(msg openedMsg) tea.Cmd {
	m.opening, m.activity = false, ""
	if msg.err != nil {
		m.ending = false
		m.result.Err = msg.err
		m.cancel()
		if m.happened(); m.fresh { // the task was new, so it does not exist
			m.o.Task = ""
		}
		m.fail(msg.err)
		// Without a model the session ends, too: the caller then offers the models found.
		if m.o.Once || m.leaving || errors.Is(msg.err, session.ErrNoModel) {
			return m.quit()
		}
		m.giveBack(m.asking)
		return nil
	}
	m.s = msg.s
	for _, w := range m.s.Opening {
		m.print(paint.Yellow.Render("! " + clean(w)))
	}
	return m.run(func(context.Context) error { return nil }) // the request is recorded
}

// nextTurn runs the agent with what record adds to the task.
func (m *screen) nextTurn(record func(context.Context) error) tea.Cmd {
	m.turn = turn{after: m.st.Last, usage: m.st.Totals.Usage, cards: m.st.Totals.CardsWritten}
	return m.run(record)
}

// run runs the agent until its turn ends.
func (m *screen) run(record func(context.Context) error) tea.Cmd {
	ctx, cancel := context.WithCancel(m.ctx)
	m.running, m.cancel, m.begun = true, cancel, m.now
	if m.leaving {
		cancel()
	}
	s := m.s
	return m.turns.Running(func() tea.Msg {
		if err := record(ctx); err != nil {
			return turnMsg{err: err}
		}
		out, err := s.Run(ctx)
		return turnMsg{out, err}
	})
}

// turnEnded shows how a turn ended, and sends what was queued.
func (m *screen) turnEnded(msg turnMsg) tea.Cmd {
	m.running, m.activity, m.calls = false, "", nil
	m.unhint()
	m.cancel()
	m.happened() // events that came before the turn's end
	m.result = Result{Last: msg.out, Ran: true, Err: msg.err}
	m.finish()
	m.outcome(msg)
	if len(msg.out.Autorun) > 0 {
		m.print(paint.Yellow.Render(clean(term.AutorunLine(msg.out))))
	}
	if msg.out.Tests != nil && !m.o.Once { // otherwise the report says it
		m.print(paint.Yellow.Render(clean(term.TestsLine(msg.out.Tests))))
	}
	m.ending = false
	m.plan = ""
	if m.planning() && msg.err == nil && msg.out.Reason == "done" && len(m.queue.List()) == 0 {
		m.plan = msg.out.Answer
	}
	if m.leaving || m.o.Once && m.plan == "" {
		return m.quit()
	}
	if unsent := new(session.UnsentError); errors.As(msg.err, &unsent) {
		m.giveBack(m.asking)
		return nil
	}
	cmd := m.changes()
	if msg.err != nil {
		cmd = m.close()
	} else {
		m.s.Offer()
	}
	// After an interruption, a limit or a fault the user decides first: queued messages go back into the line.
	if msg.err == nil && (msg.out.Reason == "done" || msg.out.Reason == "idle") {
		if text := m.queue.Drain(); text != "" {
			return tea.Batch(cmd, m.send(text))
		}
	}
	m.giveBack("")
	m.proposePlan()
	return cmd
}

// giveBack puts a request that did not begin, and queued messages, back into the line.
func (m *screen) giveBack(request string) {
	if text := joined(request, m.queue.Drain()); text != "" {
		m.edit.Set(joined(text, m.edit.Text()))
		m.edit.Dismiss()
	}
}

// reclaim takes the directory again for the open session and returns the session; nil if there is none, or if
// another process has taken the directory.
func (m *screen) reclaim() *session.Session {
	if m.s != nil && !m.running && !m.s.Reclaim() {
		m.s, m.known = nil, true
	}
	return m.s
}

// send starts a turn with a request.
func (m *screen) send(text string) tea.Cmd {
	m.printRequest(text)
	m.asking = text
	text = m.queue.With(text)
	s := m.reclaim()
	if s == nil {
		return m.begin(text)
	}
	mode, plan, moded := approval.Mode(m.approval()), m.planning(), m.moded
	m.moded = false
	return m.nextTurn(func(ctx context.Context) error {
		if moded {
			if err := s.SetMode(ctx, mode, plan); err != nil {
				return err
			}
		}
		return s.Request(ctx, text)
	})
}

func (m *screen) interrupt() {
	if m.stop != nil { // before the turn
		m.stop()
		return
	}
	if m.cancel != nil {
		m.cancel()
		m.ending = true
	}
	m.say(hintInterrupt)
}

// unhint removes the hint that a turn is being interrupted.
func (m *screen) unhint() {
	if m.hint == hintInterrupt {
		m.hint = ""
	}
}

// close ends the session; the task can be resumed.
func (m *screen) close() tea.Cmd {
	s := m.s
	if s == nil {
		return nil
	}
	return func() tea.Msg { return closedMsg{s.Close()} }
}
