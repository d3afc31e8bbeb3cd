//go:build unix

package tui

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/tool/file"
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

func typeInto(e *editor, keys ...string) {
	for _, k := range press(keys...) {
		e.press(k)
	}
}

// TestSettled: only what later text cannot change is printed for good.
func TestSettled(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a paragraph", ""},
		{"one\n\ntwo", "one\n\n"},
		{"one\n\ntwo\n\nthr", "one\n\ntwo\n\n"},
		{"```\ncode\n\nmore\n", ""},
		{"```\ncode\n\n```\n\nafter", "```\ncode\n\n```\n\n"},
		{"1. one\n\n2. two\n\n", ""},
		{"1. one\n\n2. two\n\nafter", "1. one\n\n2. two\n\n"},
		{"- one\n- two\n", ""},
		{"one\n\n- a\n\n  more of a\n", "one\n\n"},
	} {
		if got := c.text[:settled(c.text)]; got != c.want {
			t.Errorf("settled(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

// TestEditor: a long paste is one piece and comes out whole; the draft survives a walk
// through the history; files are completed.
func TestEditor(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	for _, name := range []string{"parse.go", "cmd/parser.go", ".git/parse"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := newEditor(openHistory(state, dir), dir, []string{"/jump", "/json"})
	long := strings.Repeat("a line\n", 20) + "end"
	typeInto(&e, "see ")
	e.paste(long)
	typeInto(&e, " now")
	if shown := e.area.Value(); shown != "see [paste 1: 21 lines] now" {
		t.Errorf("shown as %q", shown)
	}
	if got := e.take(); got != "see "+long+" now" {
		t.Errorf("sent %q", got)
	}
	typeInto(&e, "second", "enter")
	e.set("second")
	e.take()
	typeInto(&e, "a draft", "up", "up")
	if got := e.text(); got != "see "+long+" now" {
		t.Errorf("two up: %q", got)
	}
	typeInto(&e, "down", "down")
	if got := e.text(); got != "a draft" {
		t.Errorf("the draft became %q", got)
	}
	if again := openHistory(state, dir); len(again.entries) != 2 {
		t.Errorf("the history holds %q", again.entries)
	}
	if other := openHistory(state, state); len(other.entries) != 0 {
		t.Errorf("another directory has %q", other.entries)
	}
	e.set("")
	typeInto(&e, "read @pars")
	if !slices.Equal(e.offered, []string{"parse.go", "cmd/parser.go"}) {
		t.Errorf("offered %q", e.offered)
	}
	typeInto(&e, "down", "tab")
	if got := e.text(); got != "read @cmd/parser.go" && got != "read @cmd/parser.go " {
		t.Errorf("completed to %q", got)
	}
	e.set("")
	typeInto(&e, "/j")
	if !slices.Equal(e.offered, []string{"/jump", "/json"}) {
		t.Errorf("offered %q", e.offered)
	}
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

// TestShowChange: line numbers of both sides, and a gap where nothing changes.
func TestShowChange(t *testing.T) {
	before := "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"
	after := strings.Replace(strings.Replace(before, "b\n", "B\nB2\n", 1), "i\n", "", 1)
	lines := showChange(file.Change{Path: "x\x1b[2J", Before: before, After: after}, 40, 40)
	for i, l := range lines {
		lines[i] = strings.TrimRight(stripped(l), " ")
	}
	want := []string{`x\x1b[2J  +2 -2`, " 1   a", " 2 - b", " 2 + B", " 3 + B2", " 4   c", " 5   d", "   ⋮", " 8   g", " 9   h", " 9 - i", "10   j"}
	if !slices.Equal(lines, want) {
		t.Errorf("%q\nwant\n%q", lines, want)
	}
	cut := showChange(file.Change{Path: "x", After: strings.Repeat("line\n", 50), New: true}, 40, 5)
	if last := stripped(cut[len(cut)-1]); len(cut) != 7 || !strings.Contains(last, "45 more lines") {
		t.Errorf("%q", cut)
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
