//go:build unix

package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"anamnesis/worldstate"
)

const (
	// progressAfter is how long a scan is silent: most end before.
	progressAfter = 400 * time.Millisecond
	// progressEvery bounds how often the line is drawn.
	progressEvery = 100 * time.Millisecond
	// plainAfter and plainEvery are the same where there is no terminal, or
	// something else is shown on it: each time is a line of its own.
	plainAfter = 10 * time.Second
	plainEvery = 30 * time.Second
	clearLine  = "\r\x1b[K"
	barCells   = 20
)

// progressLine is one line of a terminal that says how far something is. Who
// calls it does so one at a time.
type progressLine struct {
	out   io.Writer
	now   func() time.Time
	start time.Time
	last  time.Time
	drawn bool
	plain bool // lines that stay, few of them
}

// showProgress makes scans that take long report on standard error.
func (a *app) showProgress(o *worldstate.Options) {
	p := &progressLine{out: a.stderr, now: time.Now, plain: !isTerminal(a.stderr)}
	o.Progress = p.show
}

// scanProgress reports on a task's scans in the same way. The later ones come between
// what the task says, so that theirs are plain lines.
func (a *app) scanProgress() func(worldstate.Progress) {
	p := &progressLine{out: a.stderr, now: time.Now, plain: !isTerminal(a.stderr)}
	return func(at worldstate.Progress) {
		p.show(at)
		p.plain = p.plain || at.Done
	}
}

func (p *progressLine) show(at worldstate.Progress) {
	if at.Done {
		p.clear()
		p.start = time.Time{}
		return
	}
	done, of := "", ""
	if at.Known >= at.Files {
		done, of = bar(at.Files, at.Known)+" ", fmt.Sprintf(" of about %d", at.Known)
	}
	p.draw(fmt.Sprintf("%s%d%s files, %s", done, at.Files, of, sizeText(at.Bytes)))
}

// showCards shows how far the reading of a folder of cards is.
func (p *progressLine) showCards(read, of int) {
	if read == of {
		p.clear()
		p.start = time.Time{}
		return
	}
	p.draw(fmt.Sprintf("%s %d of %d cards read", bar(read, of), read, of))
}

// bar is a share as a bar of barCells cells.
func bar(part, of int) string {
	full := barCells * part / max(1, of)
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", barCells-full) + "]"
}

// draw shows a text in place of the one before, not too soon and not too
// often.
func (p *progressLine) draw(text string) {
	now := p.now()
	if p.start.IsZero() {
		p.start = now
	}
	if p.plain {
		if now.Sub(p.start) >= plainAfter && now.Sub(p.last) >= plainEvery {
			p.last = now
			fmt.Fprintf(p.out, "anamnesis: looking at the files: %s so far\n", text)
		}
		return
	}
	if now.Sub(p.start) < progressAfter || now.Sub(p.last) < progressEvery {
		return
	}
	p.put(text)
}

// put shows a text in place of the one before, whenever that was.
func (p *progressLine) put(text string) {
	p.last, p.drawn = p.now(), true
	fmt.Fprint(p.out, clearLine, text)
}

// clear takes the line away again.
func (p *progressLine) clear() {
	if p.drawn {
		fmt.Fprint(p.out, clearLine)
		p.drawn = false
	}
}

// sizeText is a number of bytes for people.
func sizeText(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d B", n)
}
