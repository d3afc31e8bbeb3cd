//go:build unix

// Package frame draws below a terminal's scrollback, and follows the drawn lines when the
// terminal changes its width.
package frame

import (
	"os"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	xterm "golang.org/x/term"
)

// Frame is a terminal as the output of a program. It records which lines the renderer has
// drawn, since a narrower terminal wraps them, and moves the cursor back to where the renderer
// expects it.
type Frame struct {
	*os.File
	fixed bool // it does not wrap drawn lines to another width

	mu    sync.Mutex
	prev  drawing // to be drawn before next
	next  drawing // to be drawn
	drawn drawing // on the screen; empty before the first lines are drawn
	ready bool    // the renderer has next: what it writes is that
	vague bool    // drawn may be prev
	width int     // of the terminal when that was drawn
	begun bool    // the first lines are drawn
}

// New returns a frame of a terminal on which nothing is drawn yet.
func New(out *os.File) *Frame {
	return &Frame{File: out, fixed: fixed(os.Getenv)}
}

// fixed reports whether the terminal is xterm, which cuts its lines to another width, and not tmux
// or screen in it.
func fixed(getenv func(string) string) bool {
	return getenv("XTERM_VERSION") != "" && getenv("TMUX")+getenv("STY") == ""
}

// drawing is a number of lines by their widths, and the cursor, row rows below the first one.
type drawing struct {
	widths   []int
	row, col int
}

// View records the lines that the renderer draws next.
func (f *Frame) View(lines []string, cursor tea.Position) {
	d := drawing{row: cursor.Y, col: cursor.X}
	for _, l := range lines {
		d.widths = append(d.widths, lipgloss.Width(l))
	}
	f.mu.Lock()
	f.prev, f.next, f.ready = f.next, d, false
	f.mu.Unlock()
}

// Ready notes that the renderer has the lines of the last View. Until then it may yet be
// writing those of the View before.
func (f *Frame) Ready() {
	f.mu.Lock()
	f.ready = true
	f.mu.Unlock()
}

// Size returns the terminal's present size, 0 if it is not known.
func (f *Frame) Size() (cols, rows int) {
	cols, rows, _ = xterm.GetSize(int(f.Fd()))
	return max(cols, 0), max(rows, 0)
}

// Print writes lines above the drawn ones, and reports whether it did: it does not while the drawn
// lines fill the terminal, or while it is not known which are drawn; another View makes it known.
func (f *Frame) Print(lines []string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.vague {
		return false
	}
	cols, rows := f.Size()
	text, ok := f.insert(lines, max(cols, 1), rows)
	_, _ = f.File.WriteString(text) // the renderer's next write fails, too
	return ok
}

// minRows is how tall a terminal must be for the drawn lines to fit.
const minRows = 5

// insert returns what writes lines above the drawn ones. It inserts at most as many at a time as the
// screen has rows above the drawn lines: of more, the first would be overwritten.
func (f *Frame) insert(lines []string, cols, tall int) (string, bool) {
	var b strings.Builder
	b.WriteString(f.follow(cols))
	drawn := len(f.drawn.widths) + f.drawn.over(cols)
	if tall >= minRows && drawn >= tall {
		return b.String(), false
	}
	b.WriteString("\r" + down(-f.drawn.row))
	for len(lines) > 0 {
		n, taken := 0, 0
		for n == 0 || n < len(lines) && taken+rows(lipgloss.Width(lines[n]), cols) <= tall-drawn {
			taken += rows(lipgloss.Width(lines[n]), cols)
			n++
		}
		// The newlines scroll the top rows into the scrollback. Without them, the inserted lines would push the
		// lowest drawn lines off the screen.
		if drawn > 0 {
			b.WriteString(down(drawn-1) + strings.Repeat("\n", taken) + down(1-drawn-taken) + ansi.InsertLine(taken))
		}
		for _, l := range lines[:n] {
			b.WriteString(l + ansi.EraseLineRight + "\r\n")
		}
		lines = lines[n:]
	}
	b.WriteString(down(f.drawn.row))
	if f.drawn.col > 0 {
		b.WriteString(ansi.CursorForward(f.drawn.col))
	}
	return b.String(), true
}

// eraseBelow does what [ansi.EraseScreenBelow] does at the beginning of a line, from the second
// cell on: at the screen's first cell, tmux first copies the screen into the scrollback.
const eraseBelow = ansi.EraseLineRight + "\x1b[C" + ansi.EraseScreenBelow + "\x1b[D"

// Write passes on what the renderer writes: the lines of the last View.
func (f *Frame) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	cols, _ := f.Size()
	_, err := f.File.WriteString(f.wrote(string(p), cols))
	return len(p), err
}

func (f *Frame) WriteString(p string) (int, error) { return f.Write([]byte(p)) }

// wrote records a text of the renderer and returns it as it is to be written to a terminal of
// the width: the cursor is moved to the row that the renderer expects, before and afterwards.
func (f *Frame) wrote(p string, width int) string {
	before, after := f.follow(width), ""
	if f.begun = f.begun || strings.TrimSpace(ansi.Strip(p)) != ""; f.begun { // else it only asks the terminal
		f.drawn = f.next
		f.vague = !f.ready && !f.prev.like(&f.next, max(width, 1))
	}
	if width > 0 && strings.Contains(p, ansi.EraseScreenBelow) { // all lines are drawn
		after = down(-f.drawn.over(width))
	}
	return before + strings.ReplaceAll(p, ansi.EraseScreenBelow, eraseBelow) + after
}

// follow returns what moves the cursor to where the renderer expects it on a terminal that has
// wrapped the drawn lines to another width.
func (f *Frame) follow(width int) (move string) {
	if width > 0 && f.width > 0 && width != f.width && !f.fixed {
		move = down(-f.drawn.wrap(f.width, width))
	}
	f.width = width
	return move
}

// rows returns how many rows a line takes on a terminal.
func rows(line, width int) int { return 1 + max(0, line-1)/width }

// like reports whether two drawings take the same rows and leave the cursor in the same place.
func (d *drawing) like(o *drawing, width int) bool {
	return d.row == o.row && d.col == o.col && len(d.widths) == len(o.widths) && d.over(width) == o.over(width)
}

// over returns how many rows the lines take beyond one each.
func (d *drawing) over(width int) (n int) {
	for _, w := range d.widths {
		n += rows(w, width) - 1
	}
	return n
}

// wrap follows the cursor when the terminal wraps the lines to another width, and returns how
// many rows further down it then is. The caller moves it up by that many.
func (d *drawing) wrap(was, width int) (further int) {
	line, row := 0, d.row
	for ; line < len(d.widths)-1 && row >= rows(d.widths[line], was); line++ {
		row -= rows(d.widths[line], was)
	}
	d.col += row * was // the cursor's offset in its line, which does not depend on the width
	now := d.col / width
	for _, w := range d.widths[:line] {
		now += rows(w, width)
	}
	d.col %= width
	return now - d.row
}

// down returns the sequence that moves the cursor down, or up if n is below 0.
func down(n int) string {
	switch {
	case n > 0:
		return ansi.CursorDown(n)
	case n < 0:
		return ansi.CursorUp(-n)
	}
	return ""
}
