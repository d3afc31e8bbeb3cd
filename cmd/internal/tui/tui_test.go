//go:build unix

package tui

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
)

func press(keys ...string) (out []tea.KeyPressMsg) {
	special := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab, "backspace": tea.KeyBackspace}
	for _, k := range keys {
		if code, ok := special[k]; ok {
			out = append(out, tea.KeyPressMsg{Code: code})
			continue
		}
		for _, r := range k {
			out = append(out, tea.KeyPressMsg{Code: r, Text: string(r)})
		}
	}
	return out
}

// TestQuestion: only the keys it names answer a call, and each gives its answer.
func TestQuestion(t *testing.T) {
	for _, c := range []struct {
		keys []string
		want *runtime.Answer // nil: none yet
	}{
		{[]string{"y"}, &runtime.Answer{Allow: true}},
		{[]string{"Y"}, &runtime.Answer{Allow: true}},
		{[]string{"t"}, &runtime.Answer{Allow: true, Same: true}},
		{[]string{"a", "a"}, &runtime.Answer{Allow: true, ForTask: true}},
		{[]string{"a", "n", "?", "o", "enter", "up"}, nil},
		{[]string{"a", "x", "y"}, &runtime.Answer{Allow: true}},
		{[]string{"n", "enter"}, &runtime.Answer{}},
		{[]string{"n", "use tabs", "enter"}, &runtime.Answer{Feedback: "use tabs"}},
		{[]string{"n", "no wai", "esc", "y"}, &runtime.Answer{Allow: true}},
		{[]string{"e", "x", "enter"}, &runtime.Answer{Args: `{"command":"touch ax"}`}},
	} {
		q := &question{kind: askCall, call: runtime.Question{Call: op.Call{Name: "Bash", Args: `{"command":"touch a"}`}}, answer: make(chan runtime.Answer, 1)}
		q.open(time.Now())
		for _, k := range press(c.keys...) {
			q.press(k)
		}
		select {
		case got := <-q.answer:
			if c.want == nil || got != *c.want {
				t.Errorf("%q: %+v, want %+v", c.keys, got, c.want)
			}
		default:
			if c.want != nil {
				t.Errorf("%q: no answer, want %+v", c.keys, *c.want)
			}
		}
	}
}

// TestNearest: a name with a slip is recognised.
func TestNearest(t *testing.T) {
	for word, want := range map[string]string{"/jmp": "/jump", "/tiemline": "/timeline", "/xyzzy": "", "/hlep": "/help"} {
		if got := nearest(word, verbNames()); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
