//go:build unix

package tui

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/ask"
	"anamnesis/orchestrator/gate"
)

// Hints. While one of the first two is shown, the same key counts as the second press.
const (
	hintLeave = "Ctrl-C again to leave"
	hintJump  = "Esc again to jump back"

	hintInterrupt = "interrupting; what has begun is recorded"
	hintCleared   = "cleared; ↑ brings it back"
)

// key passes a key to the question, the list or the line.
func (m *screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	again := m.hint != "" && m.now.Sub(m.hinted) < hintFor
	hint := m.hint
	m.hint = ""
	switch name {
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+v":
		return m.pasteVerb(nil)
	case "ctrl+l":
		return tea.ClearScreen
	case "shift+tab":
		return m.nextMode()
	case "ctrl+c":
		if m.edit.Searching() {
			return m.line(k)
		}
		return m.ctrlC(again && hint == hintLeave)
	case "ctrl+d":
		if m.edit.Empty() && m.question() == nil && !m.running {
			return m.askToLeave()
		}
	}
	if q := m.question(); q != nil {
		return m.questionKey(q, k)
	}
	if m.pick != nil {
		return m.choose(k)
	}
	if m.edit.Searching() && name != "enter" {
		return m.line(k)
	}
	if name == "alt+esc" && !m.running && !m.opening { // twice at once
		return m.pickStep()
	}
	if name == "esc" && !m.edit.Offering() {
		switch {
		case m.running || m.opening || m.stop != nil:
			m.interrupt()
		case again && hint == hintJump:
			return m.pickStep()
		default:
			m.say(hintJump)
		}
		return nil
	}
	return m.line(k)
}

// questionKey handles a key while a question is shown: it answers, or it is typed into the line.
func (m *screen) questionKey(q *ask.Question, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if !m.edit.Empty() && name == "ctrl+u" {
		m.edit.Submit()
		q.Draft = false
		m.say(hintCleared)
		return nil
	}
	if !q.Armed(m.now) { // still typing the line
		return m.typed(q, k)
	}
	q.Draft = !m.edit.Empty()
	if name == "esc" && q.Interruptible() {
		m.held = nil
		m.interrupt()
		return nil
	}
	if first := m.held; first != nil {
		if m.held = nil; name == "enter" {
			return m.answer(q, *first)
		}
		return m.typed(q, *first, k)
	}
	if !q.Handles(k) { // typing; the keys that follow are, too
		return m.typed(q, k)
	}
	if q.LetsRun(k) {
		m.held = &k
		return tea.Tick(ask.HoldTime, func(time.Time) tea.Msg { return settledMsg{q, &k} })
	}
	return m.answer(q, k)
}

// typed passes keys that are no answers on to the line.
func (m *screen) typed(q *ask.Question, keys ...tea.KeyPressMsg) tea.Cmd {
	q.PutOff(m.now)
	var cmds []tea.Cmd
	for _, k := range keys {
		cmds = append(cmds, m.line(k))
	}
	return tea.Batch(cmds...)
}

// settledMsg reports that ask.HoldTime has passed since a key was held.
type settledMsg struct {
	q   *ask.Question
	key *tea.KeyPressMsg
}

// settled takes a held key as an answer unless another key has followed it.
func (m *screen) settled(msg settledMsg) tea.Cmd {
	if m.held != msg.key {
		return nil
	}
	m.held = nil
	switch q := m.question(); {
	case q != msg.q:
	case q != nil:
		return m.answer(q, *msg.key)
	case m.pick != nil:
		return m.pick.press(m, msg.key.String())
	}
	return nil
}

// choose handles a key while the list is shown. Typed text stays in the line: y and n
// are answers if no other key follows within a moment, and Enter after other text is no yes.
func (m *screen) choose(k tea.KeyPressMsg) tea.Cmd {
	first := m.held
	m.held = nil
	switch name := k.String(); {
	case name == "enter" && m.pick.words && !m.edit.Empty():
		m.pick = nil
		return m.line(k)
	case first != nil && name == "enter":
		return m.pick.press(m, first.String())
	case first != nil:
		m.pick.at = len(m.pick.rows) - 1 // both keys are text, so Enter must not agree
		return tea.Batch(m.line(*first), m.line(k))
	case m.pick.yesNo && m.edit.Empty() && (name == "y" || name == "n"):
		m.held = &k
		return tea.Tick(ask.HoldTime, func(time.Time) tea.Msg { return settledMsg{nil, &k} })
	case k.Text != "" || name == "backspace":
		if m.pick.yesNo {
			m.pick.at = len(m.pick.rows) - 1
		}
		return m.line(k)
	default:
		return m.pick.press(m, name)
	}
}

// answer passes a key to the question. If that answers it, the next question follows.
func (m *screen) answer(q *ask.Question, k tea.KeyPressMsg) tea.Cmd {
	if whole := q.Whole(k); whole != nil {
		m.print(strings.Join(whole, "\n"))
	} else if q.Press(k) {
		m.answered(q)
	} else if q.Outside {
		q.Outside = false
		name, text := term.Editable(q.Call.Args, "command", "patch", "content", "new")
		file := map[string]string{"command": "command.sh", "patch": "edit.patch", "": "arguments.json"}[name]
		e := newEditing(m.ctx, cmp.Or(file, filepath.Base(gate.TextArg(json.RawMessage(q.Call.Args), "path"))), text)
		return tea.Exec(e, func(err error) tea.Msg { return callEditedMsg{q, name, e.text, cmp.Or(e.err, err)} })
	}
	return nil
}

type callEditedMsg struct {
	q          *ask.Question
	name, text string
	err        error
}

// answered shows the question after one that is answered.
func (m *screen) answered(q *ask.Question) {
	m.questions = slices.DeleteFunc(m.questions, func(o *ask.Question) bool { return o == q })
	m.asked()
}

// ctrlC interrupts, empties the line, or leaves, in this order.
func (m *screen) ctrlC(again bool) tea.Cmd {
	switch {
	case again:
		if m.running || m.opening { // it did not end by itself
			m.cancel()
			return tea.Interrupt
		}
		return m.askToLeave()
	case m.running || m.opening || m.stop != nil:
		m.interrupt()
		m.say(hintLeave)
	case m.pick != nil && m.pick.leaves:
		return m.quit()
	case m.pick != nil:
		m.pick = nil
	case !m.edit.Empty():
		m.edit.Submit()
		m.say(hintCleared)
	default:
		m.say(hintLeave)
	}
	return nil
}

func (m *screen) line(k tea.KeyPressMsg) tea.Cmd {
	if k.Text != "" {
		m.wrote = m.now
	}
	switch k.String() {
	case "enter":
		if !m.edit.Enter() {
			return nil
		}
		return m.submit()
	case "up":
		if m.edit.Empty() {
			if text, ok := m.queue.Last(); ok {
				m.edit.Set(text)
				m.edit.Dismiss()
				return nil
			}
		}
	}
	cmd, _ := m.edit.Press(k)
	return cmd
}

// submit runs the line: a command, a shell command, or a request.
func (m *screen) submit() tea.Cmd {
	text := m.edit.Submit()
	switch {
	case text == "":
		if m.s != nil && m.outage() > 0 {
			m.s.AskNow()
		}
		return nil
	case strings.HasPrefix(text, "/") && !strings.Contains(strings.Fields(text)[0][1:], "/"):
		return m.command(text)
	case text == "!":
		m.say("! lacks a command, as in !ls")
		return nil
	case strings.HasPrefix(text, "!"):
		return m.shell(strings.TrimSpace(text[1:]))
	}
	return m.ask(text)
}

// ask sends a request, or queues it while the agent works.
func (m *screen) ask(text string) tea.Cmd {
	if m.running || m.opening {
		m.queue.Add(text)
		return nil
	}
	return m.send(text)
}
