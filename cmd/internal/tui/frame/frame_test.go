//go:build unix

package frame

import (
	"os"
	"strings"
	"testing"

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
		{[]int{100}, []int{0}, false}, {[]int{40, 20}, []int{2, 2}, false}, {[]int{40, 80}, []int{2, -1}, false}, {[]int{40, 20}, []int{0, 0}, true}, {[]int{30, 20}, []int{4, 0}, false},
	} {
		f := New(null)
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
