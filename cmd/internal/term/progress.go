package term

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
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
	// workingEvery is how long nothing else was shown before Working says how long it takes.
	workingEvery = 900 * time.Millisecond
	clearLine    = "\r\x1b[K"
	barCells     = 20
)

// Progress shows how far long work is, on one line of a terminal. Its methods must not be
// called concurrently; only the line of Working is drawn beside them.
type Progress struct {
	mu    sync.Mutex // of the fields, and of what is shown
	what  string     // is done, for plain lines
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

func (p *Progress) Scan(at worldstate.Progress) {
	if at.Done {
		p.end()
		return
	}
	p.Draw(func() string {
		done, of := "", ""
		if at.Known >= at.Files {
			done, of = Bar(at.Files, at.Known)+" ", fmt.Sprintf(" of about %d", at.Known)
		}
		return fmt.Sprintf("%s%d%s files, %s", done, at.Files, of, Size(int(at.Bytes)))
	})
}

func (p *Progress) Cards(written, of int) { p.count(written, of, "cards") }

// Sessions shows how many session files were read, or imported.
func (p *Progress) Sessions(read, of int) { p.count(read, of, "sessions") }

func (p *Progress) Tasks(read, of int) { p.count(read, of, "tasks") }

func (p *Progress) count(read, of int, what string) {
	if read == of {
		p.end()
		return
	}
	p.Draw(func() string { return fmt.Sprintf("%s %d of %d %s", Bar(read, of), read, of, what) })
}

// end clears the line; what comes next begins anew.
func (p *Progress) end() {
	p.Clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = time.Time{}
}

func Bar(part, of int) string {
	full := barCells * part / max(1, of)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barCells-full) + "]"
}

// Working shows each second how long something takes, while nothing else is shown. done ends that and clears the line:
// it is called before anything is printed.
func (p *Progress) Working(what string) (done func()) {
	p.what = what
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		begun, tick := p.now(), time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			p.mu.Lock()
			idle := p.now().Sub(p.last)
			p.mu.Unlock()
			if idle < workingEvery {
				continue // a scan is shown
			}
			p.Draw(func() string {
				seconds := fmt.Sprintf("%d s", int(p.now().Sub(begun).Seconds()))
				if p.plain {
					return seconds
				}
				return what + " … " + seconds
			})
		}
	}()
	return func() {
		cancel()
		<-ended // a tick under way would draw the line again
		p.Clear()
	}
}

// Draw replaces the text shown, after progressAfter and once in progressEvery. It is called
// for each file of a scan and calls text only to show it.
func (p *Progress) Draw(text func() string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if p.start.IsZero() {
		p.start = now
	}
	if p.plain {
		if now.Sub(p.start) >= plainAfter && now.Sub(p.last) >= plainEvery {
			p.last = now
			fmt.Fprintf(p.out, "anamnesis: %s: %s so far\n", cmp.Or(p.what, "reading"), text())
		}
		return
	}
	if now.Sub(p.start) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	line := text()
	if f, ok := p.out.(*os.File); ok { // a line that wraps cannot be cleared
		if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 1 {
			line = Line(line, cols-1)
		}
	}
	p.last, p.drawn = now, true
	fmt.Fprint(p.out, clearLine, line)
}

func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drawn {
		fmt.Fprint(p.out, clearLine)
		p.drawn = false
	}
}
