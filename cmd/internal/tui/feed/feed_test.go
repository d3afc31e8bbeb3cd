//go:build unix

package feed

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	tea "charm.land/bubbletea/v2"
)

// TestFeed: events are drained in their order, each once, and additions that were not drained yet wake the screen once.
func TestFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New()
		for i := range 3 {
			f.Add(i)
		}
		woken := 0
		f.Start(func(m tea.Msg) {
			if _, ok := m.(Added); !ok {
				t.Errorf("sent %v", m)
			}
			woken++
		})
		synctest.Wait()
		if got := f.Drain(); woken != 1 || !slices.Equal(got, []any{0, 1, 2}) {
			t.Errorf("woken %d times for %v", woken, got)
		}
		f.Add(3)
		synctest.Wait()
		if got := f.Drain(); woken != 2 || !slices.Equal(got, []any{3}) || f.Drain() != nil {
			t.Errorf("woken %d times for %v", woken, got)
		}
		f.Stop()
		<-f.Done()
		f.Add(4)
		synctest.Wait()
		if woken != 2 {
			t.Error("woken after Stop")
		}
	})
}

// TestTail: the end of each running call's output is held, until the call has ended.
func TestTail(t *testing.T) {
	f := New()
	f.Print("a", []byte("one "))
	f.Print("b", []byte("other"))
	f.Print("a", []byte("two"))
	if got := f.Tail("a"); got != "one two" {
		t.Errorf("%q", got)
	}
	f.Print("a", []byte(strings.Repeat("x", tailBytes-1)))
	if got := f.Tail("a"); len(got) != tailBytes || !strings.HasPrefix(got, "ox") {
		t.Errorf("%d bytes: %.5q", len(got), got)
	}
	f.Forget("a")
	if f.Tail("a") != "" || f.Tail("b") != "other" {
		t.Errorf("%q and %q after the end of a call", f.Tail("a"), f.Tail("b"))
	}
}

// TestTurns: Leave waits for what runs; what would begin later does not.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns Turns
		release, left := make(chan struct{}), false
		run := turns.Running(func() tea.Msg { <-release; return Added{} })
		var got tea.Msg
		go func() { got = run() }()
		synctest.Wait()
		go func() { turns.Leave(); left = true }()
		synctest.Wait()
		if left {
			t.Error("left while something runs")
		}
		close(release)
		synctest.Wait()
		if !left || got != (Added{}) {
			t.Errorf("left %v, %v", left, got)
		}
		if run() != nil {
			t.Error("something began after Leave")
		}
	})
}
