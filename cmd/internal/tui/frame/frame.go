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
	next  drawing // to be drawn
	drawn drawing // on the screen
	width int     // of the terminal when that was drawn
	above bool    // the renderer takes the cursor to be at the first line
	begun chan struct{}
	once  sync.Once
}

// New returns a frame of a terminal on which nothing is drawn yet.
func New(out *os.File) *Frame {
	return &Frame{File: out, fixed: fixed(os.Getenv), begun: make(chan struct{})}
}

// fixed reports whether the terminal is xterm, which cuts its lines to another width, and not tmux
// or screen in it.
func fixed(getenv func(string) string) bool {
	return getenv("XTERM_VERSION") != "" && getenv("TMUX")+getenv("STY") == ""
}

// Begun returns a channel that closes once the first lines are drawn. Until then the renderer
// takes its lines to be as many as the terminal's, and what it inserts above them overwrites
// rows of the user's.
func (f *Frame) Begun() <-chan struct{} { return f.begun }

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
	f.next = d
	f.mu.Unlock()
}

// Width returns the terminal's present width, 0 if it is not known.
func (f *Frame) Width() int {
	cols, _, _ := xterm.GetSize(int(f.Fd()))
	return max(cols, 0)
}

// eraseBelow does what [ansi.EraseScreenBelow] does at the beginning of a line, from the second
// cell on: at the screen's first cell, tmux first copies the screen into the scrollback.
const eraseBelow = ansi.EraseLineRight + "\x1b[C" + ansi.EraseScreenBelow + "\x1b[D"

// Write passes on what the renderer writes: the lines of the last View, or, beginning with a
// carriage return, lines above them.
func (f *Frame) Write(p []byte) (int, error) {
	text := f.wrote(string(p), f.Width())
	_, err := f.File.WriteString(text)
	if strings.TrimSpace(ansi.Strip(text)) != "" { // not only a question to the terminal
		f.once.Do(func() { close(f.begun) })
	}
	return len(p), err
}

// WriteString writes a text as Write does.
func (f *Frame) WriteString(p string) (int, error) { return f.Write([]byte(p)) }

// wrote records a text of the renderer and returns it as it is to be written to a terminal of
// the width: the cursor is moved to the row that the renderer expects, before and afterwards.
func (f *Frame) wrote(p string, width int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	before, after := "", ""
	if width > 0 && f.width > 0 && width != f.width && !f.fixed {
		before = down(-f.drawn.wrap(f.width, width))
	}
	f.width = width
	if f.above {
		before += "\r" + down(-f.drawn.row)
	}
	if f.above = strings.HasPrefix(p, "\r"); f.above { // it would leave the cursor at the first line
		if after = down(f.drawn.row); f.drawn.col > 0 {
			after += ansi.CursorForward(f.drawn.col)
		}
	} else if f.drawn = f.next; width > 0 && strings.Contains(p, ansi.EraseScreenBelow) { // all lines are drawn
		after = down(-f.drawn.over(width))
	}
	return before + strings.ReplaceAll(p, ansi.EraseScreenBelow, eraseBelow) + after
}

// rows returns how many rows a line takes on a terminal.
func rows(line, width int) int { return 1 + max(0, line-1)/width }

// over returns how many rows the lines take beyond one each.
func (d *drawing) over(width int) (n int) {
	for _, w := range d.widths {
		n += rows(w, width) - 1
	}
	return n
}

// wrap follows the cursor when the terminal wraps the lines to another width, and returns how
// many rows further down it then is. The caller moves it up by so many.
func (d *drawing) wrap(was, width int) (further int) {
	line, row := 0, d.row
	for ; line < len(d.widths)-1 && row >= rows(d.widths[line], was); line++ {
		row -= rows(d.widths[line], was)
	}
	d.col += row * was
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
