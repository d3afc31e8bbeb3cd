package shell

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClip(t *testing.T) {
	tests := []struct {
		name        string
		runes, line int
		in          string
		want        string
		cut         int64
	}{
		{"all", 20, 10, "one\ntwo\n", "one\ntwo\n", 0},
		{"empty", 20, 10, "", "", 0},
		{"line limit", 100, 3, "abcdef\nxyz\n", "abc […3 bytes of this line cut]\nxyz\n", 3},
		{"line limit at the end", 100, 3, "abcdef", "abc […3 bytes of this line cut]", 3},
		{"wide characters count as one", 100, 3, "äöüß\n", "äöü […2 bytes of this line cut]\n", 2},
		{"exactly full", 8, 10, "abc\ndef\n", "abc\ndef\n", 0},
	}
	for _, tt := range tests {
		for _, size := range []int{1, 2, 1000} {
			c, w := newClip(tt.runes, tt.line), whole{}
			for p := []byte(tt.in); len(p) > 0; p = p[min(size, len(p)):] {
				c.Write(w.next(p[:min(size, len(p))]))
			}
			c.Write(w.held)
			got, cut := c.text("")
			if got != tt.want || cut != tt.cut {
				t.Errorf("%s, %d bytes at once: text = %q, %d; want %q, %d", tt.name, size, got, cut, tt.want, tt.cut)
			}
		}
	}
}

func TestClipCutsTheMiddle(t *testing.T) {
	c := newClip(40, 100)
	var in strings.Builder
	for i := range 100 {
		fmt.Fprintf(&in, "line %02d\n", i)
	}
	c.Write([]byte(in.String()))
	got, cut := c.text("")
	head, tail, ok := strings.Cut(got, "[… ")
	if !ok || head != "line 00\nline 01\nline\n" {
		t.Errorf("head = %q", head)
	}
	_, tail, _ = strings.Cut(tail, "\n")
	if tail != "line 98\nline 99\n" {
		t.Errorf("tail = %q", tail)
	}
	if want := int64(in.Len() - len("line 00\nline 01\nline") - len(tail)); cut != want ||
		!strings.Contains(got, fmt.Sprint(want)) {
		t.Errorf("cut = %d, want %d, and said in %q", cut, want, got)
	}
}

// Whatever comes, however it is divided: valid text within the limits, and
// every byte is either shown or counted.
func TestClipProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runes, line := rapid.IntRange(2, 60).Draw(t, "runes"), rapid.IntRange(1, 30).Draw(t, "line")
		pieces := rapid.SliceOf(
			rapid.SliceOf(rapid.SampledFrom([]byte("ab\n\xff\xc3\xa4\xe2\x82\xac")))).Draw(t, "pieces")
		c, w := newClip(runes, line), whole{}
		total := 0
		for _, p := range pieces {
			total += len(p)
			c.Write(w.next(p))
		}
		c.Write(w.held)
		text, cut := c.text("")
		if !utf8.ValidString(text) {
			t.Fatalf("text is not UTF-8: %q", text)
		}
		const remarks = 200 // of the cuts themselves
		if n := utf8.RuneCountInString(text); n > runes+remarks {
			t.Fatalf("%d characters kept, limit %d: %q", n, runes, text)
		}
		if cut < 0 || total <= runes && total <= line && cut != 0 || total > 0 && text == "" {
			t.Fatalf("cut = %d of %d bytes, text %q", cut, total, text)
		}
	})
}
