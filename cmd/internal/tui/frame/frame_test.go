//go:build unix

package frame

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestWrapped: a narrower terminal wraps what was drawn above the cursor; what is not drawn yet
// does not count.
func TestWrapped(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, tt := range []struct {
		widths, want []int
		above        bool // lines were printed above since
	}{
		{[]int{80}, []int{0}, false}, {[]int{79}, []int{1}, false}, {[]int{62}, []int{2}, false}, {[]int{40}, []int{2}, false}, {[]int{20}, []int{6}, false},
		{[]int{100}, []int{0}, false}, {[]int{40, 20}, []int{2, 2}, false}, {[]int{40, 80}, []int{2, -1}, false}, {[]int{40, 20}, []int{0, 0}, true},
	} {
		f := &Frame{File: null}
		f.View([]string{strings.Repeat("─", 80), "> " + strings.Repeat("x", 60), strings.Repeat("─", 80)}, tea.Position{X: 62, Y: 1})
		_, _ = f.Write([]byte("drawn"))
		if tt.above {
			_, _ = f.Write([]byte("\rprinted"))
		}
		f.View(make([]string, 9), tea.Position{Y: 8})
		for i, width := range tt.widths {
			if got := f.Wrapped(width); got != tt.want[i] {
				t.Errorf("widths %v: %d rows at %d, want %d", tt.widths, got, width, tt.want[i])
			}
		}
	}
}

// TestPace: while no message comes, the renderer's ticker slows down; a message speeds it up.
func TestPace(t *testing.T) {
	if f, ok := reflect.TypeFor[tea.Program]().FieldByName("ticker"); !ok || f.Type != reflect.TypeFor[*time.Ticker]() {
		t.Fatal("a program has no such ticker: tickerOf finds none")
	}
	synctest.Test(t, func(t *testing.T) {
		ticker := time.NewTicker(drawEvery)
		defer ticker.Stop()
		ticks := func(d time.Duration) (n int) {
			for end := time.After(d); ; {
				select {
				case <-ticker.C:
					n++
				case <-end:
					return n
				}
			}
		}
		var p Pace
		p.wake(ticker)
		if n := ticks(restAfter / 2); n < 29 {
			t.Errorf("%d ticks in half a second after a message", n)
		}
		p.wake(ticker)
		if n := ticks(restAfter - drawEvery); n < 57 {
			t.Errorf("%d ticks in a second after another", n)
		}
		if n := ticks(10 * time.Second); n > 11 {
			t.Errorf("%d ticks in ten idle seconds", n)
		}
		p.wake(ticker)
		if n := ticks(restAfter / 2); n < 29 {
			t.Errorf("%d ticks in half a second after rest", n)
		}
		ticks(10 * time.Second) // nothing is left running
	})
}
