package term

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"anamnesis/worldstate"
)

const (
	// progressAfter is how long nothing is shown: most scans end earlier.
	progressAfter = 400 * time.Millisecond
	// progressEvery bounds how often the line is drawn.
	progressEvery = 100 * time.Millisecond
	// plainAfter and plainEvery are the same without a terminal, or if other output is
	// shown on it: each time a new line is printed.
	plainAfter = 10 * time.Second
	plainEvery = 30 * time.Second
	clearLine  = "\r\x1b[K"
	barCells   = 20
)

// Progress shows how far long work is, on one line of a terminal. Its methods must not be
// called concurrently.
type Progress struct {
	out   io.Writer
	now   func() time.Time
	start time.Time
	last  time.Time
	drawn bool
	plain bool // lines that stay, few of them
}

// NewProgress returns a line on out, which is redrawn on a terminal; elsewhere a new line is
// printed at intervals.
func NewProgress(out io.Writer) *Progress {
	return &Progress{out: out, now: time.Now, plain: !IsTerminal(out)}
}

// IsTerminal reports whether w is a terminal.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TaskScan shows how far a task's scan is. Later scans run between the task's output, so they
// print plain lines.
func (p *Progress) TaskScan(at worldstate.Progress) {
	p.Scan(at)
	p.plain = p.plain || at.Done
}

// Scan shows the progress of a scan.
func (p *Progress) Scan(at worldstate.Progress) {
	if at.Done {
		p.Clear()
		p.start = time.Time{}
		return
	}
	p.Draw(func() string {
		done, of := "", ""
		if at.Known >= at.Files {
			done, of = bar(at.Files, at.Known)+" ", fmt.Sprintf(" of about %d", at.Known)
		}
		return fmt.Sprintf("%s%d%s files, %s", done, at.Files, of, Size(int(at.Bytes)))
	})
}

// Cards shows how many cards of a change were written.
func (p *Progress) Cards(written, of int) { p.count(written, of, "cards") }

// Sessions shows how many session files were read, or imported.
func (p *Progress) Sessions(read, of int) { p.count(read, of, "sessions") }

// Tasks shows how many tasks were read.
func (p *Progress) Tasks(read, of int) { p.count(read, of, "tasks") }

func (p *Progress) count(read, of int, what string) {
	if read == of {
		p.Clear()
		p.start = time.Time{}
		return
	}
	p.Draw(func() string { return fmt.Sprintf("%s %d of %d %s", bar(read, of), read, of, what) })
}

// bar returns a bar of barCells cells.
func bar(part, of int) string {
	full := barCells * part / max(1, of)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barCells-full) + "]"
}

// Draw replaces the text shown, after progressAfter and once in progressEvery. It is called
// for each file of a scan and calls text only to show it.
func (p *Progress) Draw(text func() string) {
	now := p.now()
	if p.start.IsZero() {
		p.start = now
	}
	if p.plain {
		if now.Sub(p.start) >= plainAfter && now.Sub(p.last) >= plainEvery {
			p.last = now
			fmt.Fprintf(p.out, "anamnesis: reading: %s so far\n", text())
		}
		return
	}
	if now.Sub(p.start) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.Put(text())
}

// Put replaces the text shown at once.
func (p *Progress) Put(text string) {
	p.last, p.drawn = p.now(), true
	if f, ok := p.out.(*os.File); ok { // a line that wraps cannot be cleared
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 1 {
			text = Line(text, cols-1)
		}
	}
	fmt.Fprint(p.out, clearLine, text)
}

// Step shows on a terminal that work begins which cannot be counted.
func (p *Progress) Step(text string) {
	if !p.plain {
		p.Put(text + " …")
	}
}

// Clear removes the line.
func (p *Progress) Clear() {
	if p.drawn {
		fmt.Fprint(p.out, clearLine)
		p.drawn = false
	}
}
