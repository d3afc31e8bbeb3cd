package file

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Limits of a patch.
const (
	MaxPatchFiles = 100
	maxPatchHunks = 2_000
)

// change is a patch's change of one file.
type change struct {
	kind  changeKind
	path  string // the file's present path
	to    string // its new path; empty: unchanged
	hunks []hunk
}

type changeKind int

const (
	update changeKind = iota
	add
	remove
)

// hunk is one place of a change.
type hunk struct {
	at      int    // the patch's own line, for errors
	line    int    // where the old lines begin, from 1; 0: unknown
	count   int    // its stated number of old lines
	heading string // a line somewhere above, of the Begin Patch form
	atEnd   bool   // the old lines are the file's last
	lines   []patchLine
}

// patchLine is one line of a hunk: kept (' '), removed ('-') or added ('+').
type patchLine struct {
	op    byte
	text  string
	noEOL bool // no newline follows it in the file
	bare  bool // an empty line without the space of a kept one
}

// old returns the lines a hunk expects, and fresh its result.
func (h hunk) old() []patchLine   { return h.side('-') }
func (h hunk) fresh() []patchLine { return h.side('+') }

func (h hunk) side(op byte) []patchLine {
	var out []patchLine
	for _, l := range h.lines {
		if l.op == ' ' || l.op == op {
			out = append(out, l)
		}
	}
	return out
}

// parsePatch parses either form.
func parsePatch(text string) ([]change, error) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	p := &patchParser{lines: lines}
	for i, l := range lines {
		switch {
		case strings.TrimSpace(l) == "*** Begin Patch":
			p.at = i + 1
			return p.finish(p.begin())
		case strings.HasPrefix(l, "--- ") && p.isHeader(i), strings.HasPrefix(l, "diff --git "):
			p.at = i
			return p.finish(p.unified())
		}
	}
	return nil, errors.New("the patch has neither a line *** Begin Patch nor the lines --- and +++ of a unified diff")
}

type patchParser struct {
	lines   []string
	at      int
	changes []change
	hunks   int
}

func (p *patchParser) finish(err error) ([]change, error) {
	switch {
	case err != nil:
		return nil, fmt.Errorf("line %d of the patch: %w", min(p.at+1, len(p.lines)), err)
	case len(p.changes) == 0:
		return nil, errors.New("the patch changes no file")
	case len(p.changes) > MaxPatchFiles:
		return nil, fmt.Errorf("the patch changes %d files, at most %d are possible", len(p.changes), MaxPatchFiles)
	case p.hunks > maxPatchHunks:
		return nil, fmt.Errorf("the patch has %d hunks, at most %d are possible", p.hunks, maxPatchHunks)
	}
	return p.changes, nil
}

// isHeader reports whether the lines from i on name a file: a removed line may also begin with
// "-- ".
func (p *patchParser) isHeader(i int) bool {
	return i+1 < len(p.lines) && strings.HasPrefix(p.lines[i], "--- ") && strings.HasPrefix(p.lines[i+1], "+++ ") &&
		(i+2 >= len(p.lines) || strings.HasPrefix(p.lines[i+2], "@@") || p.lines[i+2] == "")
}

// unified parses a unified diff, including git's headers.
func (p *patchParser) unified() error {
	var from, to string // by git's lines
	for p.at < len(p.lines) {
		l := strings.TrimSuffix(p.lines[p.at], "\r")
		switch {
		case p.isHeader(p.at):
			if err := p.unifiedFile(); err != nil {
				return err
			}
			from, to = "", ""
			continue
		case strings.HasPrefix(l, "rename from "):
			from = strings.TrimPrefix(l, "rename from ")
		case strings.HasPrefix(l, "rename to "):
			to = strings.TrimPrefix(l, "rename to ")
			if next := p.at + 1; next >= len(p.lines) || !strings.HasPrefix(p.lines[next], "index ") && !p.isHeader(next) {
				p.changes = append(p.changes, change{kind: update, path: from, to: to}) // no line differs
			}
		case strings.HasPrefix(l, "GIT binary patch"), strings.HasPrefix(l, "Binary files "):
			return errors.New("binary files cannot be patched")
		case strings.HasPrefix(l, "@@"):
			return errors.New("a hunk without the lines --- and +++ that name its file")
		}
		p.at++
	}
	return nil
}

func (p *patchParser) unifiedFile() error {
	from, to := patchName(p.lines[p.at][4:]), patchName(p.lines[p.at+1][4:])
	p.at += 2
	c := change{path: from}
	switch {
	case from == "/dev/null" && to == "/dev/null":
		return errors.New("both names are /dev/null")
	case from == "/dev/null":
		c.kind, c.path = add, strings.TrimPrefix(to, "b/")
	case to == "/dev/null":
		c.kind, c.path = remove, strings.TrimPrefix(from, "a/")
	case strings.HasPrefix(from, "a/") && strings.HasPrefix(to, "b/"):
		c.path, to = from[2:], to[2:]
		fallthrough
	default:
		if to != c.path {
			c.to = to
		}
	}
	for p.at < len(p.lines) && strings.HasPrefix(p.lines[p.at], "@@") {
		h, err := hunkHeader(p.lines[p.at])
		if err != nil {
			return err
		}
		h.at = p.at + 1
		p.at++
		p.body(&h, func(i int) bool {
			return strings.HasPrefix(p.lines[i], "@@") || p.isHeader(i) || strings.HasPrefix(p.lines[i], "diff --git ")
		})
		if len(h.lines) == 0 {
			return errors.New("a hunk without lines")
		}
		c.hunks = append(c.hunks, h)
		p.hunks++
	}
	if len(c.hunks) == 0 && c.kind == update && c.to == "" {
		return fmt.Errorf("%s has no hunk", c.path)
	}
	p.changes = append(p.changes, c)
	return nil
}

// patchName is a file's name without the time that may follow it.
func patchName(s string) string {
	s, _, _ = strings.Cut(strings.TrimSuffix(s, "\r"), "\t")
	s = strings.TrimSpace(s)
	if quoted, err := strconv.Unquote(s); err == nil && strings.HasPrefix(s, `"`) {
		return quoted
	}
	return s
}

var hunkRange = regexp.MustCompile(`^@@ -(\d{1,9})(?:,(\d{1,9}))? \+\d{1,9}(?:,\d{1,9})? @@`)

func hunkHeader(l string) (hunk, error) {
	m := hunkRange.FindStringSubmatch(l)
	if m == nil {
		return hunk{}, fmt.Errorf("%.60q is not a heading of a hunk: want @@ -LINE,COUNT +LINE,COUNT @@", l)
	}
	h := hunk{count: 1}
	h.line, _ = strconv.Atoi(m[1]) // nine digits at most
	if m[2] != "" {
		h.count, _ = strconv.Atoi(m[2])
	}
	return h, nil
}

// body reads a hunk's lines until end reports that something else begins.
func (p *patchParser) body(h *hunk, end func(i int) bool) {
	old := 0
	for ; p.at < len(p.lines) && !end(p.at); p.at++ {
		l := p.lines[p.at]
		switch {
		case l == "" || l == "\r":
			h.lines = append(h.lines, patchLine{op: ' ', text: l, bare: true})
		case l[0] == ' ' || l[0] == '-' || l[0] == '+':
			h.lines = append(h.lines, patchLine{op: l[0], text: l[1:]})
		case l[0] == '\\':
			if n := len(h.lines); n > 0 {
				h.lines[n-1].noEOL = true
			}
			continue
		default:
			return
		}
		if h.lines[len(h.lines)-1].op != '+' {
			old++
		}
	}
	// Empty lines after a hunk are between it and the next, unless it counts them.
	for ; old > h.count && h.lines[len(h.lines)-1].bare; old-- {
		h.lines = h.lines[:len(h.lines)-1]
	}
}

// begin parses the lines after *** Begin Patch.
func (p *patchParser) begin() error {
	for p.at < len(p.lines) {
		l := strings.TrimRight(p.lines[p.at], "\r ")
		name := func(lead string) (string, bool) {
			rest, ok := strings.CutPrefix(l, lead)
			return strings.TrimSpace(rest), ok && strings.TrimSpace(rest) != ""
		}
		if l == "*** End Patch" {
			return nil
		}
		if path, ok := name("*** Add File: "); ok {
			p.at++
			if err := p.beginAdd(path); err != nil {
				return err
			}
		} else if path, ok := name("*** Delete File: "); ok {
			p.at++
			p.changes = append(p.changes, change{kind: remove, path: path})
		} else if path, ok := name("*** Update File: "); ok {
			p.at++
			if err := p.beginUpdate(path); err != nil {
				return err
			}
		} else if l == "" {
			p.at++
		} else {
			return fmt.Errorf("%.60q: want *** Add File: NAME, *** Update File: NAME, *** Delete File: NAME or *** End Patch", l)
		}
	}
	return errors.New("*** End Patch is missing")
}

func (p *patchParser) beginAdd(path string) error {
	h := hunk{at: p.at + 1}
	for ; p.at < len(p.lines) && !strings.HasPrefix(p.lines[p.at], "*** "); p.at++ {
		text, ok := strings.CutPrefix(p.lines[p.at], "+")
		if !ok {
			return fmt.Errorf("%.60q: each line of a new file begins with +", p.lines[p.at])
		}
		h.lines = append(h.lines, patchLine{op: '+', text: text})
	}
	p.changes = append(p.changes, change{kind: add, path: path, hunks: []hunk{h}})
	p.hunks++
	return nil
}

func (p *patchParser) beginUpdate(path string) error {
	c := change{path: path}
	if p.at < len(p.lines) {
		if to, ok := strings.CutPrefix(strings.TrimRight(p.lines[p.at], "\r "), "*** Move to: "); ok {
			c.to = strings.TrimSpace(to)
			p.at++
		}
	}
	for p.at < len(p.lines) {
		l := p.lines[p.at]
		if strings.HasPrefix(l, "*** ") {
			break
		}
		h := hunk{at: p.at + 1}
		if strings.HasPrefix(l, "@@") {
			h.heading = strings.TrimSpace(strings.TrimPrefix(l, "@@"))
			p.at++
		}
		p.body(&h, func(i int) bool { return strings.HasPrefix(p.lines[i], "@@") || strings.HasPrefix(p.lines[i], "*** ") })
		if p.at < len(p.lines) && strings.TrimRight(p.lines[p.at], "\r ") == "*** End of File" {
			h.atEnd = true
			p.at++
		}
		if len(h.lines) == 0 {
			if p.at < len(p.lines) && !strings.HasPrefix(p.lines[p.at], "@@") && !strings.HasPrefix(p.lines[p.at], "*** ") {
				return fmt.Errorf("%.60q: a line of a change begins with a space, + or -", p.lines[p.at])
			}
			continue // a heading above another
		}
		c.hunks = append(c.hunks, h)
		p.hunks++
	}
	if len(c.hunks) == 0 && c.to == "" {
		return fmt.Errorf("%s has no change", path)
	}
	p.changes = append(p.changes, c)
	return nil
}
