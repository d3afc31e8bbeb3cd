package card

import (
	"bytes"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// bulletKind is one of the three labels a bullet may carry.
type bulletKind struct {
	label string
	list  func(*Card) *[]string
}

const (
	issueBullet      = "Issue"
	solutionBullet   = "Solution"
	constraintBullet = "Constraint"
)

func bulletKinds() []bulletKind {
	return []bulletKind{
		{issueBullet, func(c *Card) *[]string { return &c.Issue }},
		{solutionBullet, func(c *Card) *[]string { return &c.Solution }},
		{constraintBullet, func(c *Card) *[]string { return &c.Constraint }},
	}
}

// bulletItem is a labelled list item of the body: the lines [start, end) it
// fills, counted from 0 within the body, and its text.
type bulletItem struct {
	kind       string
	marker     string // "-", "*", "1." …
	start, end int
	text       string
}

// parseBody finds the labelled items of the body's top-level lists.
func parseBody(body []byte, firstLine int) ([]bulletItem, error) {
	if line := tooDeepMarkdown(body); line > 0 {
		line += firstLine - 1
		return nil, Errorf(line, "quotes and lists nested deeper than %d; write plain text", maxMarkdownDepth)
	}
	lines := splitLines(body)
	starts := make([]int, len(lines)+1)
	for i, l := range lines {
		starts[i+1] = starts[i] + len(l)
	}
	lineOf := func(pos int) int {
		i, found := slices.BinarySearch(starts, pos)
		if found {
			return i
		}
		return i - 1
	}
	doc := markdownParser().Parse(gtext.NewReader(body))
	var items []bulletItem
	for list := doc.FirstChild(); list != nil; list = list.NextSibling() {
		if list.Kind() != ast.KindList {
			continue
		}
		for n := list.FirstChild(); n != nil; n = n.NextSibling() {
			label, from := itemLabel(n, body)
			if label == "" {
				continue
			}
			it := bulletItem{kind: label, start: lineOf(from)}
			// A label must be on the marker's own line; otherwise it is prose.
			it.marker = strings.TrimSpace(strings.TrimRight(string(body[starts[it.start]:from]), "*_"))
			if it.marker == "" {
				continue
			}
			offset := n.(*ast.ListItem).Offset
			it.end = itemEnd(lines, it.start, lineOf(lastPos(n)), offset)
			it.text = itemText(lines[it.start:it.end], from-starts[it.start], offset)
			if items = append(items, it); len(items) > MaxBullets {
				return nil, Errorf(firstLine+it.start, "more than %d bullets; split the card", MaxBullets)
			}
		}
	}
	return items, nil
}

// markdownParser returns a parser of CommonMark's block structure only. Labels are read
// from their line and all other text stays unchanged, so inline syntax, which takes
// quadratic time on hostile text, is not needed. One parser serves all cards, also at once: its tables take
// longer to make than a card takes to be read.
var markdownParser = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(
		util.Prioritized(parser.NewSetextHeadingParser(), 100),
		util.Prioritized(parser.NewThematicBreakParser(), 200),
		util.Prioritized(parser.NewListParser(), 300),
		util.Prioritized(parser.NewListItemParser(), 400),
		util.Prioritized(parser.NewCodeBlockParser(), 500),
		util.Prioritized(parser.NewATXHeadingParser(), 600),
		util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
		util.Prioritized(parser.NewBlockquoteParser(), 800),
		util.Prioritized(parser.NewHTMLBlockParser(), 900),
		util.Prioritized(parser.NewParagraphParser(), 1000),
	))
})

// tooDeepMarkdown returns the line whose container markers nest too deeply, or 0.
func tooDeepMarkdown(body []byte) int {
	for i, l := range splitLines(body) {
		depth := 0
		for j := 0; j < len(l); j++ {
			b := l[j]
			if b == '>' || (b == '-' || b == '+' || b == '*') && j+1 < len(l) && (l[j+1] == ' ' || l[j+1] == '\t') {
				depth++
				continue
			}
			if b != ' ' && b != '\t' && b != '.' && b != ')' && (b < '0' || b > '9') {
				break
			}
			if (b == '.' || b == ')') && j > 0 && l[j-1] >= '0' && l[j-1] <= '9' {
				depth++
			}
		}
		if depth > maxMarkdownDepth {
			return i + 1
		}
	}
	return 0
}

// itemLabel returns the label of a list item whose text begins with one in
// bold, and the position of the label's word.
func itemLabel(item ast.Node, src []byte) (string, int) {
	block := item.FirstChild()
	if block == nil || block.Lines() == nil || block.Lines().Len() == 0 {
		return "", 0
	}
	switch block.Kind() {
	case ast.KindTextBlock, ast.KindParagraph, ast.KindHeading:
	default:
		return "", 0
	}
	seg := block.Lines().At(0)
	line := string(seg.Value(src))
	for _, bold := range []string{"**", "__"} {
		rest, ok := strings.CutPrefix(line, bold)
		word, _, closed := strings.Cut(rest, bold)
		if !ok || !closed {
			continue
		}
		word = strings.TrimSpace(strings.TrimRight(word, ":： "))
		for _, k := range bulletKinds() {
			if strings.EqualFold(word, k.label) {
				return k.label, seg.Start + len(bold)
			}
		}
	}
	return "", 0
}

// lastPos returns the last position of the source that the node's tree names.
func lastPos(n ast.Node) int {
	last := 0
	// Walk's callback never fails here, and so Walk does not.
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering || c.Type() == ast.TypeInline {
			return ast.WalkSkipChildren, nil
		}
		if ls := c.Lines(); ls != nil && ls.Len() > 0 {
			last = max(last, ls.At(ls.Len()-1).Start)
		}
		return ast.WalkContinue, nil
	})
	return last
}

// itemEnd returns the line after the item: its tree covers lines up to known
// (which includes lazy continuations); indented and blank lines belong to
// it as well, blank ones at the end do not.
func itemEnd(lines []string, start, known, offset int) int {
	end := max(start, known) + 1
	for end < len(lines) && (isBlank(lines[end]) || indent(lines[end]) >= offset) {
		end++
	}
	for end > start+1 && isBlank(lines[end-1]) {
		end--
	}
	return end
}

func isBlank(l string) bool { return strings.TrimSpace(l) == "" }

// indent counts the columns of white space a line starts with; tabs stop at
// every fourth.
func indent(l string) int {
	col := 0
	for _, r := range l {
		switch r {
		case ' ':
			col++
		case '\t':
			col += 4 - col%4
		default:
			return col
		}
	}
	return col
}

// itemText returns the item's markdown without marker, label and indentation.
// from is where the label's word starts in the first line.
func itemText(lines []string, from, offset int) string {
	first := lines[0]
	closing := first[from-2 : from] // ** or __, the same as the opening one
	if _, after, ok := strings.Cut(first[from:], closing); ok {
		first = after
	}
	first = strings.TrimLeft(first, ":： \t")
	out := []string{strings.TrimRight(first, "\r\n")}
	for _, l := range lines[1:] {
		l = strings.TrimRight(l, "\r\n")
		cut := 0
		for cut < len(l) && cut < offset && l[cut] == ' ' {
			cut++
		}
		out = append(out, l[cut:])
	}
	return cleanBullet(strings.Join(out, "\n"))
}

// cleanBullet is the form in which bullet texts are kept and compared: line
// feeds only, no white space at the ends of the text, valid UTF-8.
func cleanBullet(s string) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	s = strings.ReplaceAll(s, "\r\n", "\n")
	s = strings.ReplaceAll(s, "\r", "\n")
	s = strings.ReplaceAll(s, "\x00", "\ufffd")
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if isBlank(l) {
			lines[i] = ""
		}
	}
	s = strings.Join(lines, "\n")
	return strings.TrimRight(strings.TrimLeft(s, ":： \t\n\v\f\u0085\u00a0"), " \t\n\v\f\u0085\u00a0")
}

// renderBullet writes one bullet as whole lines.
func renderBullet(k bulletKind, text, marker, eol string) string {
	text = cleanBullet(text)
	pad := strings.Repeat(" ", len(marker)+1)
	var b strings.Builder
	b.WriteString(marker + " **" + k.label + "**:")
	for i, l := range strings.Split(text, "\n") {
		switch {
		case i == 0 && startsBlock(l):
			b.WriteString(eol + pad + l)
		case i == 0:
			b.WriteString(" " + l)
		case l == "":
			b.WriteString(eol)
		default:
			b.WriteString(eol + pad + l)
		}
	}
	b.WriteString(eol)
	return b.String()
}

// startsBlock reports whether a text's first line is a list, fence, quote,
// heading or table, which needs a line of its own.
func startsBlock(l string) bool {
	marks := []string{"```", "~~~", "- ", "* ", "+ ", "> ", "# ", "## ", "### ", "|"}
	digits := strings.TrimLeft(l, "0123456789")
	return slices.ContainsFunc(marks, func(mark string) bool { return strings.HasPrefix(l, mark) }) ||
		digits != l && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") "))
}

// editBody returns the body after the bullets that differ between the card as
// read and now have been replaced, removed or added in place.
func editBody(p *parsed, now *Card) (out []byte, changed bool) {
	lines := splitLines(p.body)
	replace := make(map[int]string) // item index → its new lines
	extra := make(map[int]string)   // item index → lines after it
	var tail strings.Builder        // lines at the body's end
	last := -1                      // the last item seen in canonical order
	for _, k := range bulletKinds() {
		want := *k.list(now)
		n := 0
		for i, it := range p.items {
			if it.kind != k.label {
				continue
			}
			last = i
			switch {
			case n >= len(want):
				replace[i], changed = "", true
			case cleanBullet(want[n]) != it.text:
				replace[i], changed = renderBullet(k, want[n], it.marker, p.front.eol), true
			}
			n++
		}
		for ; n < len(want); n++ {
			changed = true
			if last < 0 {
				tail.WriteString(renderBullet(k, want[n], "-", p.front.eol))
				continue
			}
			extra[last] += renderBullet(k, want[n], p.items[last].marker, p.front.eol)
		}
	}
	if !changed {
		return p.body, false
	}
	var b bytes.Buffer
	at := 0
	for i, it := range p.items {
		writeLines(&b, lines[at:it.start])
		at = it.end
		if s, ok := replace[i]; ok {
			b.WriteString(s)
		} else {
			writeLines(&b, lines[it.start:it.end])
		}
		if extra[i] != "" {
			endLine(&b, p.front.eol)
			b.WriteString(extra[i])
		}
	}
	writeLines(&b, lines[at:])
	if tail.Len() > 0 {
		endLine(&b, p.front.eol)
		before := strings.TrimSuffix(b.String(), "\n")
		if !isBlank(before[strings.LastIndexByte(before, '\n')+1:]) {
			b.WriteString(p.front.eol)
		}
		b.WriteString(tail.String())
	}
	return b.Bytes(), true
}

func endLine(b *bytes.Buffer, eol string) {
	if b.Len() > 0 && b.Bytes()[b.Len()-1] != '\n' {
		b.WriteString(eol)
	}
}

// ModelSays begins a bullet that a model wrote on a card of which the rest is recorded.
const ModelSays = "In the model's words: "

// RestOf begins a bullet with the lines of a change that the card's other bullets leave
// out. Answers draw on it, and readers of the file may compare: searches do not read it, and
// it is not shown to models.
const RestOf = "The rest of the change in "

// IsRest reports whether a bullet begins with [RestOf].
func IsRest(bullet string) bool { return strings.HasPrefix(bullet, RestOf) }

// Bullets returns the label and text of each bullet: the issues, then the
// solutions, then the constraints. Line ends are line feeds.
func (c *Card) Bullets() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, k := range bulletKinds() {
			for _, text := range *k.list(c) {
				if !yield(k.label, cleanBullet(text)) {
					return
				}
			}
		}
	}
}
