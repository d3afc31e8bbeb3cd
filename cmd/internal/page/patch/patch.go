// Package patch reads unified diffs into lines that a page shows.
package patch

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"html/template"
	"net/url"
	"strconv"
	"strings"

	"anamnesis/cmd/internal/term"
)

// MaxBytes is how much of a patch one page shows.
const MaxBytes = 128 << 10

// Diff is a unified diff as a page shows it, with the part "diff".
type Diff struct {
	Lines []Line
	Cut   bool // there was more than MaxBytes
	// Why, if not empty, is the address that says what wrote a line: a link adds the line's file, number and kind.
	Why string
}

// Line is a line of a diff. Its first character also shows its kind, so that colour is not
// the only sign.
type Line struct {
	Kind string // ins, del, at (a heading) or ""
	Text string
	Path string // of a file's line
	No   int    // in the new file; of a deleted line, in the old one
}

// Read splits a unified diff into lines.
func Read(patch string) Diff {
	d := Diff{Cut: len(patch) > MaxBytes}
	patch = patch[:min(len(patch), MaxBytes)]
	// Before the first hunk, lines that begin with + or - name files.
	heading := strings.HasPrefix(patch, "diff ") || strings.HasPrefix(patch, "--- ")
	var paths [2]string // old and new
	var at [2]int
	for line := range strings.Lines(patch) {
		l := Line{Text: term.Clean(strings.TrimRight(line, "\r\n"))}
		switch {
		case heading && strings.HasPrefix(line, "index "):
			continue // object names
		case strings.HasPrefix(line, "@@"):
			heading = false
			l.Kind = "at"
			for i, sign := range []string{"-", "+"} {
				_, rest, _ := strings.Cut(line, " "+sign)
				_, _ = fmt.Sscanf(rest, "%d", &at[i])
			}
		case strings.HasPrefix(line, "diff "):
			heading = true
			l.Kind = "at"
		case heading:
			l.Kind = "at"
			for i, sign := range []string{"--- ", "+++ "} {
				if name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), sign); ok {
					if plain, err := strconv.Unquote(name); err == nil {
						name = plain
					}
					_, paths[i], _ = strings.Cut(name, "/")
				}
			}
		case strings.HasPrefix(line, "+"):
			l.Kind, l.Path, l.No = "ins", paths[1], at[1]
			at[1]++
		case strings.HasPrefix(line, "-"):
			l.Kind, l.Path, l.No = "del", paths[0], at[0]
			at[0]++
		case strings.HasPrefix(line, " "):
			l.Path, l.No = paths[1], at[1]
			at[0]++
			at[1]++
		}
		d.Lines = append(d.Lines, l)
	}
	return d
}

func (d Diff) HTML() template.HTML {
	var b strings.Builder
	for _, l := range d.Lines {
		tag, class := "span", ""
		switch l.Kind {
		case "ins", "del":
			tag = l.Kind
		case "at":
			class = ` class="at"`
		}
		text := html.EscapeString(l.Text)
		if d.Why != "" && l.No > 0 {
			query := url.Values{"path": {l.Path}, "line": {strconv.Itoa(l.No)}, "kind": {l.Kind}}.Encode()
			text = `<a href="` + html.EscapeString(d.Why+"?"+query) + `">` + text + "</a>"
		}
		b.WriteString("<" + tag + class + ">" + text + "</" + tag + ">")
	}
	return template.HTML(b.String())
}

// ErrFull ends a patch that is longer than a page shows.
var ErrFull = errors.New("the page is full")

// Buffer accepts at most MaxBytes, and one byte more as a sign that there are more.
type Buffer struct{ bytes.Buffer }

func (b *Buffer) Write(p []byte) (int, error) {
	room := MaxBytes + 1 - b.Len()
	if len(p) > room {
		b.Buffer.Write(p[:max(0, room)])
		return max(0, room), ErrFull
	}
	return b.Buffer.Write(p)
}
