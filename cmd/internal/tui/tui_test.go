//go:build unix

package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/tui/ask"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/tool"
)

// TestNearest: a name with a slip is recognised.
func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"/jmp": "/jump", "/tiemline": "/timeline", "/xyzzy": "", "/hlep": "/help"} {
		if got := tool.Nearest(word, verbNames()); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// TestTypingIsNoAnswer: a key that lets a call run counts if no other follows it at once.
func TestTypingIsNoAnswer(t *testing.T) {
	key := func(s string) tea.KeyPressMsg { return tea.KeyPressMsg{Text: s, Code: rune(s[0])} }
	open := func() (*screen, *ask.Question) {
		m := &screen{now: time.Unix(1000, 0), edit: editor.New(&editor.History{}, "", nil)}
		q := &ask.Question{Kind: ask.OfCall, Answer: make(chan gate.Answer, 1)}
		q.Open(m.now.Add(-time.Minute))
		m.questions = []*ask.Question{q}
		return m, q
	}

	m, q := open()
	m.key(key("t"))
	first := settledMsg{q, m.held}
	m.key(key("y"))
	m.settled(first)
	if len(q.Answer) != 0 || m.edit.Text() != "ty" {
		t.Errorf("two keys at once: answered %d times, the line holds %q", len(q.Answer), m.edit.Text())
	}

	m, q = open()
	m.key(key("y"))
	m.settled(settledMsg{q, m.held})
	if len(q.Answer) != 1 || len(m.questions) != 0 {
		t.Errorf("one key: answered %d times, %d questions left", len(q.Answer), len(m.questions))
	}
}
