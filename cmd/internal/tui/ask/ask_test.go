//go:build unix

package ask

import (
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/approval"
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
		like []approval.Rule
	}{
		{[]string{"y"}, &runtime.Answer{Allow: true}, nil},
		{[]string{"Y"}, &runtime.Answer{Allow: true}, nil},
		{[]string{"t"}, &runtime.Answer{Allow: true, Same: true}, nil},
		{[]string{"p"}, nil, nil},
		{[]string{"p"}, &runtime.Answer{Allow: true, Like: true}, []approval.Rule{{Tool: "Bash", Command: "touch *"}}},
		{[]string{"a", "a"}, &runtime.Answer{Allow: true, ForTask: true}, nil},
		{[]string{"a", "n", "?", "o", "enter", "up"}, nil, nil},
		{[]string{"a", "x", "y"}, &runtime.Answer{Allow: true}, nil},
		{[]string{"n", "enter"}, &runtime.Answer{}, nil},
		{[]string{"n", "use tabs", "enter"}, &runtime.Answer{Feedback: "use tabs"}, nil},
		{[]string{"n", "no wai", "esc", "y"}, &runtime.Answer{Allow: true}, nil},
		{[]string{"e", "x", "enter"}, &runtime.Answer{Args: `{"command":"touch ax"}`}, nil},
	} {
		q := &Question{Kind: OfCall, Call: runtime.Question{Call: op.Call{Name: "Bash", Args: `{"command":"touch a"}`}, Like: c.like}, Answer: make(chan runtime.Answer, 1)}
		q.Open(time.Now())
		for _, k := range press(c.keys...) {
			q.Press(k)
		}
		select {
		case got := <-q.Answer:
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
