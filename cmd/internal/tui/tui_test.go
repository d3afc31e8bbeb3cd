//go:build unix

package tui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/cmd/internal/tui/ask"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/feed"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// TestOpeningFails: a task that could not be continued, by a wrong model for example, is
// continued by the next request; one that did not begin is not.
func TestOpeningFails(t *testing.T) {
	m := &screen{
		ctx: t.Context(), feed: feed.New(), scrollback: scrollback{width: 80}, st: new(state.State),
		edit: editor.New(&editor.History{}, "", nil),
	}
	fail := func() {
		m.opened(openedMsg{err: errors.New("no such model")})
	}
	m.o.Task = "task_1"
	m.begin("go on")
	if fail(); m.o.Task != "task_1" || m.edit.Text() != "go on" {
		t.Errorf("the task is %q, the line holds %q", m.o.Task, m.edit.Text())
	}
	m.o.Task = ""
	m.begin("go on")
	// another process has a task of this name
	m.feed.Add(startedMsg{session.Info{Task: "task_2"}, &state.State{Last: 9}})
	if fail(); m.o.Task != "" {
		t.Errorf("a task that did not begin is kept: %q", m.o.Task)
	}
}

// TestUntil: a check is a command line as it was typed; it holds for the next request and for no other task.
func TestUntil(t *testing.T) {
	m := &screen{
		ctx: t.Context(), feed: feed.New(), scrollback: scrollback{width: 80}, st: new(state.State),
		edit: editor.New(&editor.History{}, "", nil),
	}
	says := func(line, want string) {
		t.Helper()
		m.out = nil
		m.command(line)
		if got := paint.Strip(strings.Join(m.out, "\n")); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	says("/until", "the agent alone says when it is done")
	says("/until   grep  -q 'a  b' f", "done when grep  -q 'a  b' f ends with 0")
	if g := m.o.Settings.Goal; g == nil || m.o.Request.Goal != g || g.Until[0] != "grep  -q 'a  b' f" {
		t.Errorf("the goal is %+v", m.o.Settings.Goal)
	}
	says("/until", "done when grep  -q 'a  b' f")
	said := &state.State{}
	said.Goal.Until = []string{"true"}
	said.Goal.Runs = []state.GoalRun{{Rating: op.Rating{Value: 1, Of: 2}}}
	m.started(startedMsg{session.Info{Task: "t"}, said})
	says("/until", "▅ 1 of 2 passed at step 0")
	says("/until off", "no check")
	if g := m.o.Settings.Goal; g == nil || len(g.Until) > 0 {
		t.Errorf("the goal is %+v", g)
	}
	says("/until", "the agent alone")
}

// TestShortened: an output of which the record lacks lines is shown without their number.
func TestShortened(t *testing.T) {
	for gone, want := range map[int]string{0: "│ … 13 lines, 39 B in all: /out", 5000: "│ … 5.0 kB in all: /out"} {
		m := &screen{scrollback: scrollback{width: 36}}
		m.folded(term.Shortened(strings.Repeat("x\n", 20), 2, 5, gone, ": /out"))
		if got := paint.Strip(m.out[2]); !strings.Contains(got, want) {
			t.Errorf("%d bytes are gone: %q, want %q", gone, got, want)
		}
	}
	m := &screen{scrollback: scrollback{width: 14}}
	m.folded(term.Shortened("You ended it while it ran: it may have taken effect.", 9, 9, 0, ""))
	if got := paint.Strip(strings.Join(m.out, "\n")); got != "  │ You ended\n  │ it while\n  │ it ran: i…" {
		t.Errorf("a long line is shown as\n%s", got)
	}
}

// TestInterruptedTurn: a request that the user ends is no fault of the model; a program that leaves
// does not ask for more text.
func TestInterruptedTurn(t *testing.T) {
	m := &screen{scrollback: scrollback{width: 80}, st: new(state.State)}
	m.words.reset("")
	fault := op.Op{Body: &op.ModelFailed{Error: "model: canceled"}}
	if m.apply(fault); len(m.out) != 1 {
		t.Errorf("a fault is printed as %q", m.out)
	}
	m.out, m.cancel = nil, func() {}
	m.interrupt()
	m.apply(fault)
	m.outcome(turnMsg{out: runtime.Outcome{Reason: "interrupted"}})
	m.leaving = true
	m.outcome(turnMsg{out: runtime.Outcome{Reason: "interrupted"}})
	want := []string{
		"interrupted · everything so far is recorded; type to continue",
		"interrupted · everything so far is recorded",
	}
	if got := strings.Split(paint.Strip(strings.Join(m.out, "\n")), "\n"); !slices.Equal(got, want) {
		t.Errorf("printed %q", got)
	}
}

// TestCountdown: the wait for a provider counts down in the last line; its reason is printed once.
func TestCountdown(t *testing.T) {
	now := time.Now()
	m := &screen{
		scrollback: scrollback{width: 120}, st: new(state.State), feed: feed.New(), running: true, begun: now,
		now: now,
	}
	m.words.reset("")
	wait := &op.Wait{Until: now.Add(90 * time.Second), Tries: 1}
	for range 2 {
		m.apply(op.Op{Body: &op.ModelFailed{Error: "model: http (status 503): busy", Wait: wait}})
	}
	if got := paint.Strip(strings.Join(m.out, "\n")); got != "! the provider fails and is asked again: model: http (status 503): busy" {
		t.Errorf("printed %q", got)
	}
	m.st.Outage = &state.Outage{Wait: *wait}
	for _, left := range []string{"1m30s", "1m29s"} {
		if got := paint.Strip(strings.Join(m.working(), "\n")); !strings.Contains(got, "waiting for the provider: asking again in "+left+", at ") || !strings.Contains(got, "Enter asks now · Esc interrupts") {
			t.Errorf("with %s left: %q", left, got)
		}
		m.now = m.now.Add(time.Second)
	}
}

// TestUnknownOutcome: a call that an earlier process began is shown with its command.
func TestUnknownOutcome(t *testing.T) {
	m := &screen{scrollback: scrollback{width: 80}, st: new(state.State), feed: feed.New()}
	m.st.Reply = &state.Reply{
		Calls: []state.CallState{{Call: op.Call{ID: "c", Name: "Bash", Args: `{"command":"go test ./..."}`}}},
	}
	m.returned(1, &op.ToolReturned{Call: "c", Name: "Bash", Unknown: true})
	if got := paint.Strip(strings.Join(m.out, "\n")); got != "● Bash go test ./...  outcome unknown" {
		t.Errorf("shown as %q", got)
	}
}

// TestTodoListOnce: a call that wrote the todo list is not shown beside the list.
func TestTodoListOnce(t *testing.T) {
	m := &screen{feed: feed.New(), scrollback: scrollback{width: 80}, st: new(state.State)}
	for _, failed := range []bool{false, true} {
		if m.returned(1, &op.ToolReturned{Call: "1", Name: "SetTodoList", IsError: failed, Text: "no todos"}); len(m.out) > 0 != failed {
			t.Errorf("a call that failed: %t, is shown as %q", failed, m.out)
		}
	}
}

// key is the press of a key without another.
func key(s string) tea.KeyPressMsg { return tea.KeyPressMsg{Text: s, Code: rune(s[0])} }

// asking is a screen with a question about a call, open for a minute.
func asking() (*screen, *ask.Question) {
	m := &screen{now: time.Unix(1000, 0), edit: editor.New(&editor.History{}, "", nil)}
	q := &ask.Question{Kind: ask.OfCall, Answer: make(chan gate.Answer, 1)}
	q.Open(m.now.Add(-time.Minute), time.Time{})
	m.questions = []*ask.Question{q}
	return m, q
}

// TestTypingIsNoAnswer: a key that lets a call run counts if no other follows it at once.
func TestTypingIsNoAnswer(t *testing.T) {
	m, q := asking()
	m.key(key("t"))
	first := settledMsg{q, m.held}
	m.key(key("y"))
	m.settled(first)
	if len(q.Answer) != 0 || m.edit.Text() != "ty" {
		t.Errorf("two keys at once: answered %d times, the line holds %q", len(q.Answer), m.edit.Text())
	}

	m, q = asking()
	for _, s := range []string{"g", "o", " ", "o", "n"} { // the first letter is no answer, so none is
		m.key(key(s))
	}
	if len(q.Answer) != 0 || m.edit.Text() != "go on" {
		t.Errorf("words: answered %d times, the line holds %q", len(q.Answer), m.edit.Text())
	}

	m, q = asking()
	for i, s := range []string{"a", "l", "s", "o", " ", "y"} { // slowly: the line holds text
		m.now = m.now.Add(time.Duration(i) * time.Minute)
		if m.key(key(s)); m.held != nil {
			m.settled(settledMsg{q, m.held})
		}
	}
	if len(q.Answer) != 0 || m.edit.Text() != "also y" {
		t.Errorf("slow words: answered %d times, the line holds %q", len(q.Answer), m.edit.Text())
	}

	m, _ = asking()
	late := &ask.Question{Kind: ask.OfCall, Answer: make(chan gate.Answer, 1)}
	m.line(key("g"))
	m.edit.Submit() // as it is sent
	m.questions = []*ask.Question{late}
	m.asked()
	m.now = m.now.Add(900 * time.Millisecond)
	if m.key(key("y")); m.held != nil || m.edit.Text() != "y" {
		t.Errorf("soon after typing: the line holds %q", m.edit.Text())
	}
}

// TestLineCleared: a line that was cleared before an answer is in the history.
func TestLineCleared(t *testing.T) {
	m, q := asking()
	m.edit.Edit("one\ntwo")
	m.key(tea.KeyPressMsg{Code: 'u', Mod: tea.ModCtrl})
	if !m.edit.Empty() {
		t.Errorf("the line holds %q", m.edit.Text())
	}
	m.key(key("y"))
	m.settled(settledMsg{q, m.held})
	if m.line(tea.KeyPressMsg{Code: tea.KeyUp}); len(q.Answer) != 1 || m.edit.Text() != "one\ntwo" {
		t.Errorf("answered %d times, the line holds %q", len(q.Answer), m.edit.Text())
	}
}

// TestOneKeyAnswers: a key that no other follows is the answer.
func TestOneKeyAnswers(t *testing.T) {
	m, q := asking()
	m.key(key("y"))
	m.settled(settledMsg{q, m.held})
	if len(q.Answer) != 1 || len(m.questions) != 0 {
		t.Errorf("one key: answered %d times, %d questions left", len(q.Answer), len(m.questions))
	}
}

// TestTypingAtAList: what is typed while a list is shown stays in the line; y answers it if no
// other key follows at once.
func TestTypingAtAList(t *testing.T) {
	key := func(s string) tea.KeyPressMsg { return tea.KeyPressMsg{Text: s, Code: rune(s[0])} }
	var taken []string
	open := func() *screen {
		m := &screen{now: time.Unix(1000, 0), edit: editor.New(&editor.History{}, "", nil)}
		m.pick = &picker{yesNo: true, rows: []pickRow{{text: "yes"}, {text: "no"}},
			then: func(_ *screen, r pickRow) tea.Cmd {
				taken = append(taken, r.text)
				return nil
			}}
		return m
	}
	m := open()
	m.key(key("y"))
	if m.settled(settledMsg{nil, m.held}); m.pick != nil || len(taken) != 1 || taken[0] != "yes" {
		t.Errorf("y took %v", taken)
	}
	taken, m = nil, open()
	m.key(key("y"))
	late := settledMsg{nil, m.held}
	for _, s := range []string{"e", "s", "y", "n"} {
		m.key(key(s))
	}
	m.settled(late)
	if m.pick == nil || m.edit.Text() != "yesyn" || len(taken) > 0 {
		t.Errorf("typing at once: %v taken, the line holds %q", taken, m.edit.Text())
	}
	m.key(tea.KeyPressMsg{Code: tea.KeyEnter})
	if m.pick != nil || len(taken) != 1 || taken[0] != "no" {
		t.Errorf("Enter after words took %v", taken)
	}
}

// TestGlyph: a step is drawn in its lane; the first step of a branch leaves the line it came from.
func TestGlyph(t *testing.T) {
	for _, c := range []struct {
		node   timeline.Node
		begins bool
		want   string
	}{
		{timeline.Node{OnPath: true}, false, "●"},
		{timeline.Node{OnPath: true, Current: true}, false, "◉"},
		{timeline.Node{Lane: 1}, true, "├─○"},
		{timeline.Node{Lane: 2}, false, "│ │ ○"},
		{timeline.Node{Lane: 2}, true, "│ ├─○"},
	} {
		if got := glyph(c.node, c.begins); got != c.want {
			t.Errorf("%+v, begins %v: %q, want %q", c.node, c.begins, got, c.want)
		}
	}
}
