package file

import (
	"errors"
	"fmt"
	"strings"
)

// document is a file's text by lines, byte for byte: a line holds everything up to its
// newline, including a carriage return.
type document struct {
	lines []string
	eol   bool // the last line ends with a newline
}

func readDocument(text string) document {
	if text == "" {
		return document{eol: true}
	}
	d := document{eol: strings.HasSuffix(text, "\n")}
	d.lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return d
}

func (d document) text() string {
	if len(d.lines) == 0 {
		return ""
	}
	text := strings.Join(d.lines, "\n")
	if d.eol {
		text += "\n"
	}
	return text
}

// patch applies all hunks of a change, in order. A hunk's lines must occur exactly once after
// the place of the hunk before; if they occur more often, also before it, a heading must name one of the
// places exactly.
func (d document) patch(hunks []hunk) (document, error) {
	var out []string
	from := 0
	for i, h := range hunks {
		at, err := d.find(h, from)
		if err != nil {
			return d, fmt.Errorf("hunk %d (line %d of the patch): %w", i+1, h.at, err)
		}
		out = append(out, d.lines[from:at]...)
		out = append(out, d.fresh(h, at)...)
		from = at + len(h.old())
	}
	return document{append(out, d.lines[from:]...), d.eol}, nil
}

// fresh returns the new lines at a hunk's place: kept lines as in the file, new ones with a
// carriage return if the surrounding lines have one and the patch has none.
func (d document) fresh(h hunk, at int) []string {
	crlf := false
	for i, l := range h.old() {
		crlf = crlf || d.lines[at+i] == l.text+"\r"
	}
	var out []string
	for _, l := range h.lines {
		switch l.op {
		case ' ':
			out = append(out, d.lines[at])
			at++
		case '-':
			at++
		case '+':
			text := l.text
			if crlf && !strings.HasSuffix(text, "\r") {
				text += "\r"
			}
			out = append(out, text)
		}
	}
	return out
}

// maxPlacesNamed bounds the places an error lists.
const maxPlacesNamed = 10

// find returns the index of a hunk's old lines.
func (d document) find(h hunk, from int) (int, error) {
	old := h.old()
	if len(old) == 0 {
		switch {
		case len(d.lines) == 0, h.atEnd:
			return len(d.lines), nil
		case h.heading != "":
			return d.below(h.heading, from)
		}
		return 0, errors.New("it only adds lines, without lines around them: add lines that are kept")
	}
	// What lies before from is searched, too: the error then says that the order is wrong.
	start := 0
	if h.heading != "" {
		at, err := d.below(h.heading, from)
		if err != nil {
			return 0, err
		}
		start = at
	}
	var found []int
	for at := start; at+len(old) <= len(d.lines); at++ {
		if d.matches(old, at) && (!h.atEnd || at+len(old) == len(d.lines)) {
			found = append(found, at)
		}
	}
	switch {
	case len(found) == 0, found[len(found)-1] < from:
		return 0, d.absent(old, from)
	case len(found) == 1:
		return found[0], nil
	}
	var places []string
	for _, at := range found[:min(len(found), maxPlacesNamed)] {
		places = append(places, fmt.Sprint(at+1))
	}
	return 0, fmt.Errorf("its lines occur %d times, at lines %s: add lines around the change to make it unique",
		len(found), strings.Join(places, ", "))
}

// below returns the index after the one line that a heading names.
func (d document) below(heading string, from int) (int, error) {
	var found []int
	for at := from; at < len(d.lines); at++ {
		if strings.TrimSpace(d.lines[at]) == heading {
			found = append(found, at)
		}
	}
	switch len(found) {
	case 1:
		return found[0] + 1, nil
	case 0:
		return 0, fmt.Errorf("the line %.80q of its heading does not occur", heading)
	}
	return 0, fmt.Errorf("the line %.80q of its heading occurs %d times: take another line", heading, len(found))
}

func (d document) matches(old []patchLine, at int) bool {
	for i, l := range old {
		if have := d.lines[at+i]; have != l.text && have != l.text+"\r" {
			return false
		}
	}
	return true
}

// absent explains why old lines are not found: how far the best place agrees.
func (d document) absent(old []patchLine, from int) error {
	best, agree := -1, 0
	for at := range d.lines {
		n := 0
		for n < len(old) && at+n < len(d.lines) && d.matches(old[n:n+1], at+n) {
			n++
		}
		if n > agree {
			best, agree = at, n
		}
	}
	switch {
	case best < 0:
		return fmt.Errorf("its first line %.80q does not occur; read the file again", old[0].text)
	case agree == len(old):
		return fmt.Errorf("its lines occur at line %d only, which is before line %d, where the hunk before ends: put "+
			"the hunks in the file's order", best+1, from+1)
	}
	have := "the file's end"
	if best+agree < len(d.lines) {
		have = fmt.Sprintf("%.80q", d.lines[best+agree])
	}
	return fmt.Errorf("its lines do not occur; at line %d the file has %s where the patch expects %.80q", best+agree+1,
		have, old[agree].text)
}
