//go:build unix

package paint

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/sergi/go-diff/diffmatchpatch"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/tool/file"
)

// Limits of a diff on the screen.
const (
	contextLines = 2
	maxDiffBytes = 1 << 20
)

// diffLine is a line of a file with its numbers before and after; 0: it is not there.
type diffLine struct {
	before, after int
	text          string
}

// lineDiff compares two texts by lines.
func lineDiff(before, after string) []diffLine {
	d := diffmatchpatch.New()
	a, b, lines := d.DiffLinesToRunes(before, after)
	var out []diffLine
	i, j := 0, 0
	for _, part := range d.DiffCharsToLines(d.DiffMainRunes(a, b, false), lines) {
		for line := range strings.Lines(part.Text) {
			line = strings.TrimRight(line, "\r\n")
			switch part.Type {
			case diffmatchpatch.DiffEqual:
				i, j = i+1, j+1
				out = append(out, diffLine{i, j, line})
			case diffmatchpatch.DiffDelete:
				i++
				out = append(out, diffLine{before: i, text: line})
			case diffmatchpatch.DiffInsert:
				j++
				out = append(out, diffLine{after: j, text: line})
			}
		}
	}
	return out
}

// Title names a file with the number of its lines that a call adds and removes. Where it is wider
// than width, the path lacks its beginning.
func Title(c file.Change, width int) string {
	path, counts := title(c)
	if over := lipgloss.Width(path) + lipgloss.Width(counts) - width; over > 0 {
		path = ansi.TruncateLeft(path, over+1, "…")
	}
	return Bold.Render(path) + counts
}

// title returns a file's path, and what a call does to it.
func title(c file.Change) (path, what string) {
	plus, minus := 0, 0
	for _, l := range lineDiff(c.Before, c.After) {
		if l.before == 0 {
			plus++
		}
		if l.after == 0 {
			minus++
		}
	}
	switch {
	case c.New:
		what = " (new)"
	case c.After == "" && minus > 0:
		what = " (emptied or deleted)"
	}
	return term.Clean(c.Path), fmt.Sprintf("%s  %s %s", what, Green.Render(fmt.Sprintf("+%d", plus)),
		Red.Render(fmt.Sprintf("-%d", minus)))
}

// Change renders what a call changes in one file: a title with the whole path, and Diff.
func Change(c file.Change, width, limit int) []string {
	if len(c.Before)+len(c.After) > maxDiffBytes {
		return Wrap(fmt.Sprintf("%s  %s → %s", Bold.Render(term.Clean(c.Path)), term.Size(len(c.Before)),
			term.Size(len(c.After))), width)
	}
	path, what := title(c)
	return append(Wrap(Bold.Render(path)+what, width), Diff(c, width, limit)...)
}

// Diff renders the lines that a call changes in one file with a few around them, at most limit. Long
// changed lines are wrapped, others cut. A large file has none.
func Diff(c file.Change, width, limit int) (lines []string) {
	if len(c.Before)+len(c.After) > maxDiffBytes {
		return nil
	}
	diff := lineDiff(c.Before, c.After)
	shown := make([]bool, len(diff))
	for i, l := range diff {
		if l.before > 0 && l.after > 0 {
			continue
		}
		for k := max(0, i-contextLines); k <= min(len(diff)-1, i+contextLines); k++ {
			shown[k] = true
		}
	}
	digits := len(fmt.Sprint(len(diff)))
	gap := false
	for i, l := range diff {
		if !shown[i] {
			gap = true
			continue
		}
		rows := l.render(digits, width, limit/2)
		if len(lines)+len(rows) > limit {
			rest := 0
			for _, more := range shown[i:] {
				if more {
					rest++
				}
			}
			return append(lines, Faint.Render(fmt.Sprintf("%*s … %s", digits, "", quote.Number(rest, "more line"))))
		}
		if gap && len(lines) > 0 {
			lines = append(lines, Faint.Render(fmt.Sprintf("%*s ⋮", digits, "")))
		}
		gap = false
		lines = append(lines, rows...)
	}
	return lines
}

// render returns the line's rows. A changed one is wrapped, up to a number of rows.
func (l diffLine) render(digits, width, most int) (rows []string) {
	text := strings.ReplaceAll(term.Clean(l.text), "\t", "    ")
	style, mark, n := Green, "+", l.after
	switch {
	case l.before > 0 && l.after > 0:
		return []string{Cut(Faint.Render(fmt.Sprintf("%*d  ", digits, n))+" "+text, width)}
	case l.after == 0:
		style, mark, n = Red, "-", l.before
	}
	head, room := fmt.Sprintf("%*d %s ", digits, n, mark), max(width-digits-3, 8)
	for part := range strings.SplitSeq(ansi.Hardwrap(Cut(text, room*most), room, true), "\n") {
		rows = append(rows, style.Render(head+part))
		head = strings.Repeat(" ", digits+3)
	}
	return rows
}

// Patch colours a unified diff.
func Patch(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		text := strings.ReplaceAll(term.Clean(strings.TrimRight(line, "\r\n")), "\t", "    ")
		switch {
		case strings.HasPrefix(line, "index "):
			continue
		case strings.HasPrefix(line, "diff "), strings.HasPrefix(line, "+++"), strings.HasPrefix(line, "---"):
			text = Bold.Render(text)
		case strings.HasPrefix(line, "@@"):
			text = Cyan.Render(text)
		case strings.HasPrefix(line, "+"):
			text = Green.Render(text)
		case strings.HasPrefix(line, "-"):
			text = Red.Render(text)
		}
		out = append(out, text)
	}
	return out
}
