//go:build unix

package tui

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/tui/ask"
	"anamnesis/cmd/internal/tui/feed"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/session"
)

// seat is a screen without a terminal, in a bubble of synctest: its commands run as time passes.
type seat struct {
	*screen
	q    *ask.Question
	msgs chan tea.Msg
}

// asked returns a seat that shows a question about a command.
func asked(t *testing.T, cols, rows int) *seat {
	out, err := os.Create(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	svc := &session.Service{}
	svc.Home.State = t.TempDir()
	s := &seat{newScreen(t.Context(), Options{Service: svc, Out: out}, feed.New()), nil, make(chan tea.Msg, 100)}
	s.q = &ask.Question{
		Kind:   ask.OfCall,
		Call:   gate.Question{Call: op.Call{Name: "Bash", Args: `{"command":"touch a"}`}, Why: "mode:ask"},
		Answer: make(chan gate.Answer, 1),
	}
	s.update(tea.WindowSizeMsg{Width: cols, Height: rows})
	s.wait(sizeFor)
	s.feed.Add(s.q)
	s.update(feed.Added{})
	return s
}

// update handles a message, and starts the command that follows.
func (s *seat) update(msg tea.Msg) {
	_, cmd := s.Update(msg)
	s.start(cmd)
}

func (s *seat) start(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	go func() {
		switch msg := cmd().(type) {
		case nil:
		case tea.BatchMsg:
			for _, c := range msg {
				s.start(c)
			}
		default:
			s.msgs <- msg
		}
	}()
}

// wait lets time pass.
func (s *seat) wait(d time.Duration) {
	for end := time.Now().Add(d); ; {
		synctest.Wait()
		select {
		case msg := <-s.msgs:
			s.update(msg)
			continue
		default:
		}
		if !time.Now().Before(end) {
			return
		}
		time.Sleep(min(10*time.Millisecond, time.Until(end)))
	}
}

// types presses keys, each a while after the one before.
func (s *seat) types(text string, pause time.Duration) {
	for i, r := range text {
		if i > 0 {
			s.wait(pause)
		}
		k := tea.KeyPressMsg{Code: r, Text: string(r)}
		if r == '\n' {
			k = tea.KeyPressMsg{Code: tea.KeyEnter}
		}
		s.update(k)
	}
}

func (s *seat) shown() string { return paint.Strip(s.View().Content) }

// TestKeyOrWord: one key answers a question that has been shown for a moment; the same key as the
// first letter of a word that is typed slowly does not, nor does what was typed ahead.
func TestKeyOrWord(t *testing.T) {
	for _, c := range []struct {
		after time.Duration // of the question
		keys  string
		pause time.Duration
		want  string // the answer
		line  string
	}{
		{time.Second, "y", 0, "allow", ""},
		{time.Second, "y\n", 100 * time.Millisecond, "allow", ""},
		{100 * time.Millisecond, "y", 0, "", "y"},
		{100 * time.Millisecond, "y\n", 500 * time.Millisecond, "", ""}, // it was sent as a message
		{time.Second, "you should not", 450 * time.Millisecond, "", "you should not"},
		{time.Second, "actually no", 900 * time.Millisecond, "", "actually no"},
		{time.Second, "no tabs\n", 450 * time.Millisecond, "o tabs", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := asked(t, 80, 24)
			s.running = true
			s.wait(c.after)
			s.types(c.keys, c.pause)
			s.wait(ask.HoldTime)
			got := ""
			select {
			case a := <-s.q.Answer:
				switch {
				case a.Allow:
					got = "allow"
				default:
					got = a.Text
				}
			default:
			}
			if got != c.want || s.edit.Text() != c.line {
				t.Errorf("%q after %v: the answer is %q, want %q; the line %q, want %q", c.keys, c.after, got, c.want,
					s.edit.Text(), c.line)
			}
			s.running = false
			s.wait(2 * hintFor)
		})
	}
}

// TestKeysShown: the keys of a question are shown in each size, before they count as answers, too,
// and while a command of the user runs.
func TestKeysShown(t *testing.T) {
	for _, size := range [][2]int{{80, 24}, {40, 12}, {40, 8}, {40, 5}, {20, 5}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := asked(t, size[0], size[1])
				keys := func(when string) {
					t.Helper()
					for _, key := range []string{"y once", "n no", "e edit"} {
						if shown := s.shown(); !strings.Contains(shown, key) ||
							strings.Count(shown, "\n") >= size[1]-1 {
							t.Errorf("%s: %q is not shown:\n%s", when, key, shown)
						}
					}
				}
				keys("at first")
				s.queue.Add("a message")
				s.wait(time.Second)
				keys("later")
				s.types("!sleep 9", 0)
				s.Update(tea.KeyPressMsg{Code: tea.KeyEnter}) // it is not started
				if keys("as the command begins"); len(s.mine) == 0 ||
					size[1] > 10 && !strings.Contains(s.shown(), "running: ! sleep 9") {
					t.Errorf("the command is not shown:\n%s", s.shown())
				}
				s.update(shellMsg{line: "sleep 9", out: strings.Repeat("line\n", 50)})
				s.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
				s.Update(tea.KeyPressMsg{Code: tea.KeyBackspace})
				keys("as it has ended")
				s.wait(4 * time.Second)
				keys("afterwards")
			})
		})
	}
}

// TestMarkAlone: the mark of a command without one is not sent.
func TestMarkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := asked(t, 80, 24)
		s.types("! \n", 0)
		if len(s.queue.List())+len(s.mine) > 0 || s.opening || s.hint != "! lacks a command, as in !ls" {
			t.Errorf("%q, %q, %v", s.queue.List(), s.hint, s.opening)
		}
		s.wait(2 * hintFor)
	})
}
