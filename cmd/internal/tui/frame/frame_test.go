//go:build unix

package frame

import (
	"slices"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// TestWrap: a narrower terminal wraps what was drawn above the cursor, and the cursor moves with
// it; what is not drawn yet does not count.
func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		widths, want []int
	}{
		{[]int{80}, []int{0}}, {[]int{79}, []int{1}}, {[]int{62}, []int{2}}, {[]int{40}, []int{2}}, {[]int{20}, []int{6}},
		{[]int{100}, []int{0}}, {[]int{40, 20}, []int{2, 2}}, {[]int{40, 80}, []int{2, -1}}, {[]int{30, 20}, []int{4, 0}},
	} {
		f := &Frame{}
		f.View([]string{strings.Repeat("─", 80), "> " + strings.Repeat("x", 60), strings.Repeat("─", 80)},
			tea.Position{X: 62, Y: 1})
		f.wrote("drawn", 80)
		f.View(make([]string, 9), tea.Position{Y: 8})
		was := 80
		for i, width := range tt.widths {
			if got := f.drawn.wrap(was, width); got != tt.want[i] {
				t.Errorf("widths %v: %d rows at %d, want %d", tt.widths, got, width, tt.want[i])
			}
			was = width
		}
	}
}

// TestDrawnNarrow: where the terminal is narrower than the renderer knows, the cursor is moved to
// the row that the renderer expects, before and after it draws; nothing is erased from the
// screen's first cell on.
func TestDrawnNarrow(t *testing.T) {
	f := &Frame{}
	rule := strings.Repeat("─", 80)
	f.View([]string{rule, "> ", rule}, tea.Position{X: 2, Y: 1})
	if got := f.wrote("\x1b[Jdrawn", 80); got != "\x1b[K\x1b[C\x1b[J\x1b[Ddrawn" {
		t.Errorf("at its width: %q", got)
	}
	if got := f.wrote("x", 80); got != "x" {
		t.Errorf("a part: %q", got)
	}
	if got := f.wrote("\x1b[Jdrawn", 40); !strings.HasPrefix(got, "\x1b[A\x1b[K") ||
		!strings.HasSuffix(got, "drawn\x1b[2A") {
		t.Errorf("narrower: %q", got)
	}
	for range 2 { // above the lines; the cursor stays where the user types
		if got, ok := f.insert([]string{"printed"}, 40, 24); !ok ||
			got != "\r\x1b[A\x1b[4B\n\x1b[5A\x1b[Lprinted\x1b[K\r\n\x1b[B\x1b[2C" {
			t.Errorf("above: %q", got)
		}
	}
}

// TestTallPrint: lines that are more than the screen has above the drawn ones are inserted in
// pieces that fit; none while the drawn ones fill the screen.
func TestTallPrint(t *testing.T) {
	f := &Frame{}
	many := strings.Split(strings.Repeat("line\n", 39)+"last", "\n")
	if got, _ := f.insert(many, 80, 24); got != "\r"+strings.Join(many, "\x1b[K\r\n")+"\x1b[K\r\n" {
		t.Errorf("before anything is drawn: %q", got)
	}
	f.View(make([]string, 22), tea.Position{Y: 21})
	f.Ready()
	f.wrote("\x1b[?2026$p", 80)
	if len(f.drawn.widths) > 0 {
		t.Error("a question to the terminal counts as drawn lines")
	}
	f.wrote("drawn", 80)
	got, ok := f.insert(many, 80, 24)
	if n := strings.Count(got, "\n\n\x1b[23A\x1b[2Lline\x1b[K\r\n"); !ok || n != 20 ||
		!strings.HasSuffix(got, "last\x1b[K\r\n\x1b[21B") {
		t.Errorf("%v, %d pieces: %q", ok, n, got)
	}
	if _, ok := f.insert(many, 80, 22); ok {
		t.Error("printed where no row is left")
	}
}

// TestVague: nothing is printed while the renderer may have drawn either of two views.
func TestVague(t *testing.T) {
	f := &Frame{}
	f.View(make([]string, 4), tea.Position{Y: 1})
	f.Ready()
	f.wrote("drawn", 80)
	f.View(make([]string, 3), tea.Position{Y: 1})
	if f.wrote("drawn", 80); !f.vague {
		t.Error("a write while the renderer may have the view before")
	}
	f.View(make([]string, 3), tea.Position{Y: 1})
	if f.wrote("drawn", 80); f.vague {
		t.Error("two views of the same rows")
	}
}

// TestDrawnFixed: a terminal that cuts its lines leaves the cursor in its row.
func TestDrawnFixed(t *testing.T) {
	for vars, want := range map[string]bool{"": false, "XTERM_VERSION": true, "XTERM_VERSION TMUX": false, "XTERM_VERSION STY": false} {
		if fixed(func(name string) string {
			return map[bool]string{true: "set"}[slices.Contains(strings.Fields(vars), name)]
		}) != want {
			t.Errorf("with %q: not %v", vars, want)
		}
	}
	f := &Frame{fixed: true}
	f.View([]string{strings.Repeat("─", 80), "> "}, tea.Position{X: 2, Y: 1})
	f.wrote("drawn", 80)
	if got := f.wrote("x", 40); got != "x" {
		t.Errorf("narrower: %q", got)
	}
}
