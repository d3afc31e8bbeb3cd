//go:build unix

package ask

import (
	"fmt"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/tool/file"
)

func press(keys ...string) (out []tea.KeyPressMsg) {
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "up": tea.KeyUp, "down": tea.KeyDown, "tab": tea.KeyTab,
		"backspace": tea.KeyBackspace,
	}
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
		want *gate.Answer // nil: none yet
		like []approval.Rule
	}{
		{[]string{"y"}, &gate.Answer{Allow: true}, nil},
		{[]string{"Y"}, &gate.Answer{Allow: true}, nil},
		{[]string{"t"}, &gate.Answer{Allow: true, Same: true}, nil},
		{[]string{"w"}, &gate.Answer{Allow: true, Always: true}, nil},
		{[]string{"p"}, nil, nil},
		{[]string{"p"}, &gate.Answer{Allow: true, Like: true}, []approval.Rule{{Tool: "Bash", Command: "touch *"}}},
		{[]string{"a", "?", "o", "enter", "up"}, nil, nil},
		{[]string{"n", "enter"}, &gate.Answer{}, nil},
		{[]string{"n", "use tabs", "enter"}, &gate.Answer{Text: "use tabs"}, nil},
		{[]string{"n", "no wai", "esc", "y"}, &gate.Answer{Allow: true}, nil},
		{[]string{"e", "x", "enter"}, &gate.Answer{Args: `{"command":"touch ax"}`}, nil},
	} {
		q := &Question{
			Kind:   OfCall,
			Call:   gate.Question{Call: op.Call{Name: "Bash", Args: `{"command":"touch a"}`}, Like: c.like},
			Answer: make(chan gate.Answer, 1),
		}
		q.Open(time.Now(), time.Time{})
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

// TestEdited: what is no line is edited outside, and answers unless it cannot be made arguments of the call.
// TestTrustHelp: the keys that are explained are those that answer.
func TestTrustHelp(t *testing.T) {
	q := &Question{Kind: OfTrust, Text: "Use it?", Answer: make(chan gate.Answer, 1)}
	q.Open(time.Now(), time.Time{})
	q.Press(press("?")[0])
	lines, _ := q.View(100, 40, time.Now().Add(time.Hour))
	text := strings.Join(lines, "\n")
	if !strings.Contains(text, "y  approve it as it is now") || strings.Contains(text, "\n  t  ") ||
		strings.Contains(text, "\n  e  ") {
		t.Errorf("%s", text)
	}
}

func TestEdited(t *testing.T) {
	for _, c := range []struct{ args, name, text, want, note string }{
		{`{"path":"a","content":"x\n"}`, "content", "y\n", `{"content":"y\n","path":"a"}`, ""},
		{`{"path":"a","old":"x","new":"y"}`, "new", "z\n", `{"new":"z","old":"x","path":"a"}`, ""},
		{`{"path":"a"}`, "", "{\n  \"path\": \"b\"\n}\n", `{"path":"b"}`, ""},
		{`{"path":"a"}`, "", "path: b", "", "the arguments are not valid JSON"},
	} {
		q := &Question{
			Kind: OfCall, Call: gate.Question{Call: op.Call{Name: "WriteFile", Args: c.args}},
			Answer: make(chan gate.Answer, 1),
		}
		q.Open(time.Now(), time.Time{})
		if q.Press(press("e")[0]); !q.Outside {
			t.Fatalf("%s is edited on a line", c.args)
		}
		if ok := q.Edited(c.name, c.text, nil); ok != (c.note == "") || !strings.HasPrefix(q.note, c.note) ||
			ok && (<-q.Answer).Args != c.want {
			t.Errorf("%s with %q: %v, %q", c.args, c.text, ok, q.note)
		}
	}
}

// TestEmptyLine: an empty line asks again.
func TestEmptyLine(t *testing.T) {
	q := &Question{Kind: OfText, Text: "Which?", Answer: make(chan gate.Answer, 1)}
	q.Open(time.Now(), time.Time{})
	if q.Press(press("enter")[0]) || q.note == "" {
		t.Error("an empty line answers")
	}
}

// TestLongCommand: what does not fit is counted, and the reason to ask stays.
func TestLongCommand(t *testing.T) {
	q := &Question{
		Kind: OfCall,
		Call: gate.Question{
			Call: op.Call{Name: "Bash", Args: `{"command":"` + strings.Repeat(`echo a\n`,
				40) + `echo b > c.txt 2>/dev/null; bash -c 'ls >> \"$d\" 2>&1'; > c.txt\nrm -rf b"}`},
			Why: "mode:ask",
		},
	}
	lines, _ := q.View(60, 24, time.Now())
	text := paint.Strip(strings.Join(lines, "\n"))
	if !strings.Contains(text, "more lines, not shown; v shows everything\n  runs echo, bash, ls, rm · writes c.txt, $d · asked because\n  approval is ask\n") || len(lines) > 22 {
		t.Error(text)
	}
}

// TestLongEdit: on a small screen, too, the count of the lines that are not shown is right, and v
// shows all.
func TestLongEdit(t *testing.T) {
	text := strings.Repeat("a line that is longer than what fits in it\n", 300)
	q := &Question{
		Kind: OfCall, Call: gate.Question{Call: op.Call{Name: "WriteFile", Args: `{"path":"a"}`}},
		Changes: []file.Change{{Path: "a", After: text, New: true}},
	}
	for _, size := range [][2]int{{40, 12}, {40, 24}, {100, 30}} {
		lines, _ := q.View(size[0], size[1], time.Now())
		shown := strings.Count(paint.Strip(strings.Join(lines, "\n")), "+ a line")
		want := fmt.Sprintf("… %d more lines\n", 300-shown)
		if got := paint.Strip(strings.Join(lines, "\n")); shown == 0 || !strings.Contains(got, want) ||
			!strings.Contains(got, "v view all") {
			t.Errorf("%d x %d lacks %q:\n%s", size[0], size[1], want, got)
		}
		if whole := strings.Join(q.Whole(press("v")[0]), "\n"); strings.Count(paint.Strip(whole), "+ a line") != 300 {
			t.Errorf("v shows %d bytes", len(whole))
		}
	}
	q = &Question{Kind: OfCall, Call: gate.Question{Call: op.Call{Name: "Bash", Args: `{"command":"ls"}`}}}
	if q.View(40, 12, time.Now()); q.Handles(press("v")[0]) {
		t.Error("v is an answer where all is shown")
	}
}
