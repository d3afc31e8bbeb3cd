package shell

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// clip keeps the head and the tail of an output in bounded memory. It cuts the end of lines
// longer than its limit. The zero value is not usable; see newClip. Not safe for concurrent
// use.
type clip struct {
	headRunes, tailRunes int // budgets
	lineRunes            int

	head   []byte
	headN  int    // runes in head
	tail   []byte // the last bytes after head, compacted now and then
	full   bool   // head takes no more
	passed int64

	seen             int64 // bytes taken before the present ones
	headEnd, lineEnd int64 // byte offsets of the end of the head and of the first cut in a long line; -1: none

	inLine  int   // runes of the current line already kept
	lineCut int64 // bytes of the current line left out
	cut     int64 // bytes left out of lines, all together
}

// newClip keeps at most runes characters, half of them head, and at most
// lineRunes of a line.
func newClip(runes, lineRunes int) *clip {
	return &clip{headRunes: runes / 2, tailRunes: runes - runes/2, lineRunes: lineRunes, headEnd: -1, lineEnd: -1}
}

// Write takes the next piece of output; pieces should not split characters.
func (c *clip) Write(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		line, rest := p, []byte(nil)
		if end >= 0 {
			line, rest = p[:end], p[end+1:]
		}
		c.part(line)
		c.seen += int64(len(line))
		if end >= 0 {
			c.endLine()
			c.keep([]byte{'\n'})
			c.inLine = 0
			c.seen++
		}
		p = rest
	}
}

func (c *clip) part(line []byte) {
	if room := c.lineRunes - c.inLine; len(line) > room {
		// Possibly too long: count exactly.
		n, at := 0, 0
		for at < len(line) && n < room {
			_, size := utf8.DecodeRune(line[at:])
			at += size
			n++
		}
		c.inLine += n
		c.lineCut += int64(len(line) - at)
		if c.lineCut > 0 && c.lineEnd < 0 {
			c.lineEnd = c.seen + int64(at)
		}
		line = line[:at]
	} else {
		c.inLine += utf8.RuneCount(line)
	}
	c.keep(line)
}

// endLine notes at the end of a line how much of it was cut.
func (c *clip) endLine() {
	if c.lineCut == 0 {
		return
	}
	whole := !c.full
	c.keep(fmt.Appendf(nil, " […%d bytes of this line cut]", c.lineCut))
	if whole && c.full {
		c.headEnd = c.seen - c.lineCut
	}
	c.cut += c.lineCut
	c.lineCut = 0
}

// keep adds bytes to the head while there is room, then to the tail.
func (c *clip) keep(p []byte) {
	if !c.full {
		at := 0
		for at < len(p) && c.headN < c.headRunes {
			_, size := utf8.DecodeRune(p[at:])
			at += size
			c.headN++
		}
		c.head = append(c.head, p[:at]...)
		if c.full = c.headN >= c.headRunes; c.full {
			c.headEnd = c.seen // the line it ends in is stored from here
		}
		p = p[at:]
	}
	c.passed += int64(len(p))
	c.tail = append(c.tail, p...)
	if most := c.tailRunes * utf8.UTFMax; len(c.tail) > 4*most {
		n := copy(c.tail, c.tail[len(c.tail)-most:])
		c.tail = c.tail[:n]
	}
}

// isCut reports whether text will leave anything out.
func (c *clip) isCut() bool {
	return c.cut > 0 || c.lineCut > 0 || c.isMiddleCut()
}

func (c *clip) isMiddleCut() bool {
	return c.passed > int64(len(c.tail)) || utf8.RuneCount(c.tail) > c.tailRunes
}

// text returns the kept output, with a note at the cut, and how many bytes are omitted. how
// says how to see the omitted middle. It ends the output.
func (c *clip) text(how string) (string, int64) {
	c.endLine()
	tail := c.tail
	for n := utf8.RuneCount(tail); n > c.tailRunes; n-- {
		_, size := utf8.DecodeRune(tail)
		tail = tail[size:]
	}
	missing := c.passed - int64(len(tail))
	if missing == 0 {
		return valid(c.head) + valid(tail), c.cut
	}
	// Begin the tail with a whole line if one begins soon.
	if i := bytes.IndexByte(tail, '\n'); i >= 0 && i <= c.lineRunes*utf8.UTFMax && i+1 < len(tail) {
		missing += int64(i + 1)
		tail = tail[i+1:]
	}
	head := valid(c.head)
	if !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return fmt.Sprintf("%s[… %d bytes of output cut here; %s …]\n%s",
		head, missing, how, valid(tail)), c.cut + missing
}

func valid(p []byte) string { return strings.ToValidUTF8(string(p), "\uFFFD") }

// whole passes on a stream's bytes without splitting characters: an incomplete one at the end
// waits for the next piece.
type whole struct {
	held []byte
}

// next returns the bytes to pass on now. The result is valid until the next call
// or until p changes.
func (w *whole) next(p []byte) []byte {
	if len(w.held) > 0 {
		p = append(w.held, p...)
	}
	end := len(p) - unfinished(p)
	w.held = bytes.Clone(p[end:])
	return p[:end]
}

// unfinished returns how many bytes at the end begin a character that is not complete.
func unfinished(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return n
			}
			break
		}
	}
	return 0
}
