package file

import (
	"errors"
	"fmt"
	"slices"
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
	heading string // a line somewhere above
	atEnd   bool   // the old lines are the file's last
	lines   []patchLine
}

// patchLine is one line of a hunk: kept (' '), removed ('-') or added ('+').
type patchLine struct {
	op   byte
	text string
	bare bool // an empty line without the space of a kept one
}

func (h hunk) old() []patchLine {
	return slices.DeleteFunc(slices.Clone(h.lines), func(l patchLine) bool { return l.op == '+' })
}

// parsePatch parses a patch. What stands before *** Begin Patch is not read.
func parsePatch(text string) ([]change, error) {
	p := &patchParser{lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n")}
	p.at = 1 + slices.IndexFunc(p.lines, func(l string) bool { return strings.TrimSpace(l) == "*** Begin Patch" })
	if p.at == 0 {
		return nil, errors.New("the patch has no line *** Begin Patch")
	}
	return p.finish(p.begin())
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

// body reads a hunk's lines, up to what begins with none of the three marks.
func (p *patchParser) body(h *hunk) {
	for ; p.at < len(p.lines); p.at++ {
		switch l := p.lines[p.at]; {
		case l == "" || l == "\r":
			h.lines = append(h.lines, patchLine{op: ' ', text: l, bare: true})
			continue
		case l[0] == ' ' || l[0] == '-' || l[0] == '+':
			h.lines = append(h.lines, patchLine{op: l[0], text: l[1:]})
			continue
		}
		break
	}
	// Empty lines after a hunk are between it and the next.
	for n := len(h.lines); n > 0 && h.lines[n-1].bare; n-- {
		h.lines = h.lines[:n-1]
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
			return fmt.Errorf("%.60q: want *** Add File: NAME, *** Update File: NAME, *** Delete File: NAME or "+
				"*** End Patch", l)
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
		p.body(&h)
		if p.at < len(p.lines) && strings.TrimRight(p.lines[p.at], "\r ") == "*** End of File" {
			h.atEnd = true
			p.at++
		}
		if len(h.lines) == 0 {
			if p.at < len(p.lines) {
				if l := p.lines[p.at]; !strings.HasPrefix(l, "@@") && !strings.HasPrefix(l, "*** ") {
					return fmt.Errorf("%.60q: a line of a change begins with a space, + or -", l)
				}
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
