// Package term shows a task's events and its timeline on a terminal. Text of models, tools
// and files may hold control sequences and is escaped first.
package term

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"github.com/mattn/go-runewidth"
	"golang.org/x/term"
)

// Clean makes text safe for a terminal: tabs and newlines stay, every other
// control character, bidirectional override and invalid byte is shown as an
// escape.
func Clean(s string) string {
	if strings.IndexFunc(s, hostile) < 0 && utf8.ValidString(s) {
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&sb, `\x%02x`, s[i])
		case hostile(r) && r < 0x80:
			fmt.Fprintf(&sb, `\x%02x`, r)
		case hostile(r):
			fmt.Fprintf(&sb, `\u%04x`, r)
		default:
			sb.WriteRune(r)
		}
		i += n
	}
	return sb.String()
}

// hostile reports whether a character could change what a terminal shows.
func hostile(r rune) bool {
	switch {
	case r == '\n' || r == '\t':
		return false
	case r == '\u061c', r == '\u200b', r == '\u200e', r == '\u200f', r == '\u2028', r == '\u2029', r == '\ufeff':
		return true
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return unicode.IsControl(r)
}

// Line makes text safe and puts it on one line of at most width columns.
func Line(s string, width int) string {
	s = strings.TrimSpace(strings.NewReplacer("\n", " ", "\t", " ").Replace(Clean(s)))
	if len(s) <= width { // no character has more columns than bytes, and the table of widths takes a while to make
		return s
	}
	return runewidth.Truncate(s, width, "…")
}

// Fit breaks lines that are wider than the terminal w at words. If w is no terminal, they stay.
func Fit(w io.Writer, text string) string {
	f, ok := w.(*os.File)
	if !ok {
		return text
	}
	cols, _, err := term.GetSize(int(f.Fd()))
	if err != nil || cols <= 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		lines[i] = wrapped(l, cols)
	}
	return strings.Join(lines, "\n")
}

// wrapped breaks a line at words; what follows the first is indented further.
func wrapped(line string, width int) string {
	if lipgloss.Width(line) <= width {
		return line
	}
	text := strings.Trim(line, " ")
	at := strings.Index(line, text)
	indent, end := line[:at], line[at+len(text):]
	return indent + strings.ReplaceAll(lipgloss.Wrap(text, max(width-at-2-len(end), 8), ""),
		"\n", "\n"+indent+"  ") + end
}

// ModelName is a model's name; of a recording, the file's name without its folder.
func ModelName(name string) string {
	if path, ok := strings.CutPrefix(name, "script:"); ok {
		name = "script:" + filepath.Base(path)
	}
	return Clean(name)
}

// ShortDir is a directory's absolute path, with the user's home as a tilde.
func ShortDir(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		dir = "~" + dir[len(home):]
	}
	return Clean(dir)
}
