//go:build unix

package tui

import (
	"bytes"
	"os"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	xterm "golang.org/x/term"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/frame"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// sizeFor is how long nothing is printed after the terminal's width has changed.
const sizeFor = 300 * time.Millisecond

// scrollback is the terminal's size and colors, and the finished lines that are printed above
// what View draws.
type scrollback struct {
	to      *os.File
	frame   *frame.Frame
	width   int // in columns
	tall    int // in rows
	sized   time.Time
	theme   string // dark, light or none
	profile colorprofile.Profile
	md      paint.Markdown

	out    []string // lines to be printed, in order
	blank  bool     // the last of them is empty
	nudged bool     // View changes its text invisibly, so that the renderer draws it again
}

// newScrollback returns the scrollback of a terminal. theme is one of [Options].
func newScrollback(to *os.File, theme string) scrollback {
	b := scrollback{to: to, frame: frame.New(to), width: 80, tall: 24, theme: theme,
		profile: colorprofile.Detect(to, os.Environ())}
	if cols, rows, err := xterm.GetSize(int(to.Fd())); err == nil && cols > 0 {
		b.width, b.tall = max(cols, 10), max(rows, 5)
	}
	if theme == "" || theme == "auto" {
		b.theme = "dark"
	}
	if b.profile <= colorprofile.ASCII || theme == "none" {
		b.theme, b.profile = "none", min(b.profile, colorprofile.ASCII)
	}
	return b
}

// present returns the terminal's present size, which may have changed since the message was
// sent.
func (b *scrollback) present(size tea.WindowSizeMsg) tea.Msg {
	if cols, rows, err := xterm.GetSize(int(b.to.Fd())); err == nil && cols > 0 {
		size.Width, size.Height = cols, rows
	}
	return size
}

func (b *scrollback) resize(width, tall int, now time.Time) {
	if b.tall = max(tall, 5); max(width, 10) != b.width {
		b.width, b.sized = max(width, 10), now
	}
}

// resizing reports whether the terminal's width is changing. tmux wraps its lines up to a
// quarter of a second before it reports a width, and what is printed then is inserted at the
// wrong place.
func (b *scrollback) resizing(now time.Time) bool {
	cols, _ := b.frame.Size()
	return now.Sub(b.sized) < sizeFor || cols > 0 && max(cols, 10) != b.width
}

// print adds lines, at most as wide as the terminal.
func (b *scrollback) print(text string) {
	for line := range strings.SplitSeq(text, "\n") {
		if line == "" && b.blank {
			continue
		}
		b.blank = line == ""
		b.out = append(b.out, paint.Wrap(line, b.width)...)
	}
}

func (b *scrollback) fail(err error) { b.print(paint.Red.Render("! ") + clean(exit.Text(err))) }

// folded adds an output, as [term.Shortened] or [term.Folded] returns it.
func (b *scrollback) folded(lines []string) {
	for _, l := range lines {
		if strings.HasPrefix(l, "… ") {
			l = paint.Faint.Render(l)
		}
		rows := paint.Wrap(l, b.width-4)
		for k, row := range rows[:min(len(rows), maxRows)] {
			if k == maxRows-1 && len(rows) > maxRows {
				row = paint.Cut(row+"…"+rows[maxRows], b.width-4)
			}
			b.print(paint.Faint.Render("  │ ") + row)
		}
	}
}

func (b *scrollback) markdown(text string) []string {
	b.md.Fit(b.width, b.theme)
	return b.md.Render(text)
}

// flush prints the waiting lines, unless the width is changing.
func (b *scrollback) flush(now time.Time) {
	if len(b.out) == 0 || b.resizing(now) {
		return
	}
	if b.frame.Print(strings.Split(b.waiting(), "\n")) {
		b.out, b.nudged = nil, false
	} else {
		b.nudged = !b.nudged // the renderer writes nothing for an unchanged View, and Print needs another one
	}
}

// waiting returns the lines to print in the colors of the terminal.
func (b *scrollback) waiting() string {
	var text bytes.Buffer
	w := colorprofile.Writer{Forward: &text, Profile: b.profile}
	_, _ = w.Write([]byte(strings.Join(b.out, "\n"))) // a buffer never fails
	return text.String()
}

// words returns what the plain printer writes about events.
type words struct {
	text    bytes.Buffer
	printer term.Printer
}

// reset prepares for the events of a task in dir.
func (w *words) reset(dir string) { w.printer = term.NewText(nil, &w.text, 4096, dir, term.NoOutputs) }

func (w *words) op(o op.Op) string {
	w.printer.Op(o)
	return w.taken()
}

func (w *words) retry(at model.Attempt) string {
	w.printer.Retry(at)
	return w.taken()
}

func (w *words) taken() string {
	text := strings.TrimRight(w.text.String(), "\n")
	w.text.Reset()
	return text
}
