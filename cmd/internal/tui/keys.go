//go:build unix

package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// The hints after which the same key counts twice.
const (
	hintLeave = "Ctrl-C again to leave"
	hintJump  = "Esc again to jump back"
)

// key gives a key to the question, the list or the line.
func (m *screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	again := m.hint != "" && m.now.Sub(m.hinted) < hintFor
	hint := m.hint
	m.hint = ""
	switch name {
	case "ctrl+z":
		return tea.Suspend
	case "ctrl+c":
		return m.ctrlC(again && hint == hintLeave)
	case "ctrl+d":
		if m.edit.Empty() && m.question() == nil && !m.running {
			return m.quit()
		}
	}
	if q := m.question(); q != nil {
		if !q.Armed(m.now) { // still typing the line
			q.PutOff(m.now)
			return m.line(k)
		}
		if name == "esc" && q.Interruptible() {
			m.interrupt()
			return nil
		}
		if q.Press(k) {
			m.questions = m.questions[1:]
			m.asked()
		}
		return nil
	}
	if m.pick != nil {
		return m.pick.press(m, name)
	}
	if name == "alt+esc" && !m.running && !m.opening { // twice at once
		return m.pickStep()
	}
	if name == "esc" && !m.edit.Offering() {
		switch {
		case m.running || m.opening:
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

// ctrlC interrupts, empties the line, or leaves, in this order.
func (m *screen) ctrlC(again bool) tea.Cmd {
	switch {
	case again:
		if m.running || m.opening { // it did not end by itself
			m.cancel()
			return tea.Interrupt
		}
		return m.quit()
	case m.running || m.opening:
		m.interrupt()
		m.say(hintLeave)
	case m.pick != nil:
		m.pick = nil
	case !m.edit.Empty():
		m.edit.Take()
		m.say("cleared; ↑ brings it back")
	default:
		m.say(hintLeave)
	}
	return nil
}

// line gives a key to the editor.
func (m *screen) line(k tea.KeyPressMsg) tea.Cmd {
	switch k.String() {
	case "enter":
		if !m.edit.Enter() {
			return nil
		}
		return m.submit()
	case "up":
		if m.edit.Empty() {
			if text, ok := m.queue.last(); ok {
				m.edit.Set(text)
				m.edit.Dismiss()
				return nil
			}
		}
	}
	cmd, _ := m.edit.Press(k)
	return cmd
}

// submit does what the line says: a command, a shell command, or a request.
func (m *screen) submit() tea.Cmd {
	text := m.edit.Take()
	switch {
	case text == "":
		return nil
	case strings.HasPrefix(text, "/") && !strings.Contains(strings.Fields(text)[0][1:], "/"):
		return m.command(text)
	case strings.HasPrefix(text, "!") && len(text) > 1:
		return m.shell(strings.TrimSpace(text[1:]))
	case m.running || m.opening:
		m.queue.add(text)
		return nil
	}
	return m.send(text)
}
