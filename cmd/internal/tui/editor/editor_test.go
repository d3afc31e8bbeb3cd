//go:build unix

package editor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
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

func typeInto(e *Editor, keys ...string) {
	for _, k := range press(keys...) {
		e.Press(k)
	}
}

// TestEditor: a long paste is one piece and comes out whole; the draft survives a walk
// through the history; files are completed.
func TestEditor(t *testing.T) {
	dir, state := t.TempDir(), t.TempDir()
	for _, name := range []string{"parse.go", "cmd/parser.go", ".git/parse", "my dir/a note"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := New(OpenHistory(state, dir), dir, []Verb{{"/jump", "go back"}, {"/json", "print"}})
	long := strings.Repeat("a line\n", 20) + "end\n"
	typeInto(&e, "see ")
	e.Paste(long)
	typeInto(&e, " now")
	if shown := e.area.Value(); shown != "see [paste 1: 21 lines] now" {
		t.Errorf("shown as %q", shown)
	}
	if got := e.Submit(); got != "see "+long+" now" {
		t.Errorf("sent %q", got)
	}
	typeInto(&e, "second", "enter")
	e.Set("second")
	e.Submit()
	typeInto(&e, "a draft", "up", "up")
	if got := e.Text(); got != "see "+long+" now" {
		t.Errorf("two up: %q", got)
	}
	typeInto(&e, "down", "down")
	if got := e.Text(); got != "a draft" {
		t.Errorf("the draft became %q", got)
	}
	if again := OpenHistory(state, dir); len(again.entries) != 2 {
		t.Errorf("the history holds %q", again.entries)
	}
	t.Chdir(dir)
	if same := OpenHistory(state, "."); len(same.entries) != 2 {
		t.Errorf("the same directory as \".\" has %q", same.entries)
	}
	t.Chdir(state)
	if other := OpenHistory(state, "."); len(other.entries) != 0 {
		t.Errorf("another directory as \".\" has %q", other.entries)
	}
	if other := OpenHistory(state, state); len(other.entries) != 0 {
		t.Errorf("another directory has %q", other.entries)
	}
	e.Set("")
	typeInto(&e, "read @pars")
	if !slices.Equal(e.offered, []string{"parse.go", "cmd/parser.go"}) {
		t.Errorf("offered %q", e.offered)
	}
	typeInto(&e, "down", "tab")
	if got := e.Text(); got != "read @cmd/parser.go" && got != "read @cmd/parser.go " {
		t.Errorf("completed to %q", got)
	}
	e.Set("")
	typeInto(&e, "read @not", "tab")
	if got := e.Text(); got != `read @"my dir/a note" ` {
		t.Errorf("completed to %q", got)
	}
	e.Set("")
	typeInto(&e, "/j")
	if !slices.Equal(e.offered, []string{"/jump", "/json"}) {
		t.Errorf("offered %q", e.offered)
	}
	e.Set("see ")
	e.Paste(long)
	typeInto(&e, "backspace", "it")
	if got := e.Submit(); got != "see it" {
		t.Errorf("a paste was erased to %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "later.go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if typeInto(&e, "@later"); !slices.Equal(e.offered, []string{"later.go"}) {
		t.Errorf("offered %q", e.offered)
	}
}

// TestOutbox: what is attached goes with the next message, and is not lost where there is none.
func TestOutbox(t *testing.T) {
	var b Outbox
	b.Attach("ls", "exit 0", "output\n")
	if got := b.With(b.Drain()); got != "" {
		t.Errorf("without a message: %q", got)
	}
	b.Add("one")
	b.Add("two")
	if got := b.With(b.Drain()); got != "one\n\ntwo\n\nI ran `ls` (exit 0):\n```\noutput\n```" ||
		Typed(got) != "one\n\ntwo" {
		t.Errorf("queued messages: %q", got)
	}
	if got := b.With("three"); got != "three" {
		t.Errorf("the message after: %q", got)
	}
}
