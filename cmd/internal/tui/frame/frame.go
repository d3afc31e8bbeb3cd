//go:build unix

// Package frame draws below a terminal's scrollback, and follows the drawn lines when the
// terminal changes its width.
package frame

import (
	"bytes"
	"os"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// Frame is a terminal as the output of a program. It records which lines the renderer has
// drawn, since a narrower terminal wraps them, and its cursor moves with them.
type Frame struct {
	*os.File

	mu    sync.Mutex
	next  drawing // to be drawn
	drawn drawing // on the screen
	begun chan struct{}
	once  sync.Once
}

// New returns a frame of a terminal on which nothing is drawn yet.
func New(out *os.File) *Frame { return &Frame{File: out, begun: make(chan struct{})} }

// Begun returns a channel that closes once the first lines are drawn. Until then the renderer
// takes its lines to be as many as the terminal's, and what it inserts above them overwrites
// rows of the user's.
func (f *Frame) Begun() <-chan struct{} { return f.begun }

// drawing is a number of lines by their widths, and the cursor in them.
type drawing struct {
	widths    []int
	line, col int
	row       int // below the first one, as the renderer counts
}

// View records the lines that the renderer draws next.
func (f *Frame) View(lines []string, cursor tea.Position) {
	d := drawing{line: min(cursor.Y, len(lines)), col: cursor.X, row: cursor.Y}
	for _, l := range lines {
		d.widths = append(d.widths, lipgloss.Width(l))
	}
	f.mu.Lock()
	f.next = d
	f.mu.Unlock()
}

// Write passes on what the renderer writes: the lines of the last View, or, beginning with a
// carriage return, lines above them, after which the cursor is at the first line.
func (f *Frame) Write(p []byte) (int, error) {
	f.mu.Lock()
	if bytes.HasPrefix(p, []byte("\r")) {
		f.drawn.line, f.drawn.col, f.drawn.row = 0, 0, 0
	} else {
		f.drawn = f.next
	}
	f.mu.Unlock()
	n, err := f.File.Write(p)
	if strings.TrimSpace(ansi.Strip(string(p))) != "" { // not only a question to the terminal
		f.once.Do(func() { close(f.begun) })
	}
	return n, err
}

// Wrapped returns how many rows further down the cursor is than the renderer counts, once
// the terminal has wrapped the lines to a width. The caller moves it up by so many.
func (f *Frame) Wrapped(width int) (down int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := &f.drawn
	rows := func(line int) int { return 1 + max(0, d.widths[line]-1)/width }
	row := d.col / width
	for line := range d.line {
		row += rows(line)
	}
	left := d.row
	for d.line = 0; d.line < len(d.widths) && left >= rows(d.line); d.line++ {
		left -= rows(d.line)
	}
	d.col = left*width + d.col%width
	return row - d.row
}
