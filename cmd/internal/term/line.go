package term

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// maxLineRunes bounds a line that is typed.
const maxLineRunes = 1 << 20

// line is a line being typed. It is edited at its end.
type line struct{ text []rune }

// add takes what was typed, shows it on out and returns the lines that are complete.
// Sequences of keys without a character, such as arrows, have no effect.
func (l *line) add(out io.Writer, typed []byte) (complete []string) {
	for len(typed) > 0 {
		if typed[0] == 0x1b {
			typed = typed[escapeSequence(typed):]
			continue
		}
		r, n := utf8.DecodeRune(typed)
		typed = typed[n:]
		switch {
		case r == '\n' || r == '\r':
			fmt.Fprintln(out)
			complete = append(complete, strings.TrimSpace(string(l.text)))
			l.text = nil
		case r == 0x7f || r == '\b':
			l.cut(out, len(l.text)-1)
		case r == 0x15: // Ctrl-U
			l.cut(out, 0)
		case r == 0x17: // Ctrl-W
			at := len(l.text)
			for ; at > 0 && unicode.IsSpace(l.text[at-1]); at-- {
			}
			for ; at > 0 && !unicode.IsSpace(l.text[at-1]); at-- {
			}
			l.cut(out, at)
		case r == '\t':
			l.put(out, ' ')
		case !unicode.IsControl(r) && r != utf8.RuneError:
			l.put(out, r)
		}
	}
	return complete
}

func (l *line) put(out io.Writer, r rune) {
	if len(l.text) < maxLineRunes {
		l.text = append(l.text, r)
		fmt.Fprint(out, Clean(string(r)))
	}
}

// cut takes the end of the line away, from a place on.
func (l *line) cut(out io.Writer, from int) {
	from = max(from, 0)
	if n := runewidth.StringWidth(Clean(string(l.text[from:]))); n > 0 {
		fmt.Fprint(out, strings.Repeat("\b", n)+strings.Repeat(" ", n)+strings.Repeat("\b", n))
	}
	l.text = l.text[:from]
}

// escapeSequence is the length of the sequence of a key that text begins with.
func escapeSequence(text []byte) int {
	if len(text) < 2 || text[1] != '[' && text[1] != 'O' {
		return min(len(text), 2)
	}
	for i := 2; i < len(text); i++ {
		if text[i] >= 0x40 && text[i] <= 0x7e {
			return i + 1
		}
	}
	return len(text)
}
