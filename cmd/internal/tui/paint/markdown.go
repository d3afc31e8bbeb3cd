//go:build unix

package paint

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	gtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"anamnesis/cmd/internal/term"
)

// Markdown renders a model's words in the terminal's own colours, flush left and without
// padding, so that what is copied is the text. Code is not highlighted: the libraries for
// that cost each start of the program some ten milliseconds. The zero value renders
// nothing of the markup.
type Markdown struct {
	width int
	plain bool // marks instead of colours
}

// Fit sets the width, and the theme: dark, light or none.
func (md *Markdown) Fit(width int, theme string) {
	md.width, md.plain = max(width-2, 10), theme == "none"
}

// Render returns lines without an empty one at either end.
func (md *Markdown) Render(text string) []string {
	text = term.Clean(text)
	if md.width > 0 {
		g := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList))
		r := &rendering{plain: md.plain, src: []byte(text)}
		text = strings.Join(r.blocks(g.Parser().Parse(gtext.NewReader(r.src)), md.width), "\n")
	}
	lines := strings.Split(text, "\n")
	blank := func(l string) bool { return strings.TrimSpace(Strip(l)) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// rendering is one text on its way to the terminal.
type rendering struct {
	plain bool
	src   []byte
}

// blocks renders the children of a block, an empty line between them.
func (r *rendering) blocks(n ast.Node, width int) []string {
	var out []string
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		lines := r.block(c, max(width, 10))
		if len(out) > 0 && len(lines) > 0 && c.Kind() != ast.KindTextBlock && !isTight(n, c) {
			out = append(out, "")
		}
		out = append(out, lines...)
	}
	return out
}

// isTight reports whether no empty line is between a block and the one before: in a
// list that has none, and before a list in an item of such a list.
func isTight(parent, n ast.Node) bool {
	if l, ok := parent.(*ast.List); ok {
		return l.IsTight
	}
	return n.Kind() == ast.KindList && n.PreviousSibling() != nil && n.PreviousSibling().Kind() == ast.KindTextBlock
}

func (r *rendering) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		return wrapStyled(r.style(Blue.Bold(true)).Render(strings.Repeat("#", n.Level)+" "+Strip(r.inline(n))), width)
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock:
		return r.verbatim(n)
	case *ast.Blockquote:
		return prefixed(r.blocks(n, width-2), "│ ", "│ ")
	case *ast.List:
		return r.blocks(n, width)
	case *ast.ListItem:
		mark := "• "
		if l := n.Parent().(*ast.List); l.IsOrdered() {
			at := l.Start
			for c := l.FirstChild(); c != n; c = c.NextSibling() {
				at++
			}
			mark = fmt.Sprintf("%d%c ", at, l.Marker)
		}
		indent := strings.Repeat(" ", lipgloss.Width(mark))
		return prefixed(r.blocks(n, width-len(indent)), mark, indent)
	case *ast.ThematicBreak:
		return []string{r.style(Faint).Render(strings.Repeat("─", min(width, 40)))}
	case *extast.Table:
		return r.table(n, width)
	}
	return wrapStyled(r.inline(n), width)
}

// verbatim returns the lines of a block that is not markdown.
func (r *rendering) verbatim(n ast.Node) []string {
	var out []string
	style := r.style(Cyan).TabWidth(lipgloss.NoTabConversion)
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		out = append(out, style.Render(strings.TrimRight(string(at.Value(r.src)), "\r\n")))
	}
	return out
}

func (r *rendering) table(n *extast.Table, width int) []string {
	t := table.New().BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).BorderStyle(r.style(Faint)).
		StyleFunc(func(_, col int) lipgloss.Style {
			style := lipgloss.NewStyle().Padding(0, 1)
			if col < len(n.Alignments) && n.Alignments[col] == extast.AlignRight {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil; c = c.NextSibling() {
			cells = append(cells, r.inline(c))
		}
		if row.Kind() == extast.KindTableHeader {
			t.Headers(cells...)
		} else {
			t.Row(cells...)
		}
	}
	lines := strings.Split(t.Render(), "\n")
	if lipgloss.Width(lines[0]) > width {
		lines = strings.Split(t.Width(width).Render(), "\n")
	}
	return lines
}

// inline renders the text of a block.
func (r *rendering) inline(n ast.Node) string {
	var b strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.WriteString(r.span(c))
	}
	return b.String()
}

func (r *rendering) span(n ast.Node) string {
	switch n := n.(type) {
	case *ast.Text:
		text := r.text(n.Segment.Value(r.src))
		switch {
		case n.HardLineBreak():
			text += "\n"
		case n.SoftLineBreak():
			text += " "
		}
		return text
	case *ast.String:
		return r.text(n.Value)
	case *ast.RawHTML:
		return term.Clean(string(n.Segments.Value(r.src)))
	case *ast.CodeSpan:
		return r.marked(Cyan, "`", Strip(r.inline(n)))
	case *ast.Emphasis:
		if n.Level > 1 {
			return r.marked(Bold, "**", r.inline(n))
		}
		return r.marked(lipgloss.NewStyle().Italic(true), "*", r.inline(n))
	case *extast.Strikethrough:
		return r.marked(Faint, "~~", r.inline(n))
	case *extast.TaskCheckBox:
		if n.IsChecked {
			return "[x] "
		}
		return "[ ] "
	case *ast.AutoLink:
		return r.address(string(n.URL(r.src)))
	case *ast.Link:
		text, to := r.inline(n), string(n.Destination)
		if Strip(text) == to {
			return r.address(to)
		}
		return text + " " + r.address(to)
	case *ast.Image:
		return "image: " + r.inline(n) + " " + r.address(string(n.Destination))
	}
	return r.inline(n)
}

// text returns what markdown's escapes and entities stand for, without what would act
// on the terminal.
func (r *rendering) text(raw []byte) string {
	return term.Clean(string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(raw)))))
}

func (r *rendering) address(to string) string {
	return r.style(Blue).Render(term.Clean(to))
}

// marked shows a span by its style, or by its mark where there are no styles.
func (r *rendering) marked(s lipgloss.Style, mark, text string) string {
	if r.plain {
		return mark + text + mark
	}
	return s.Render(text)
}

func (r *rendering) style(s lipgloss.Style) lipgloss.Style {
	if r.plain {
		return lipgloss.NewStyle()
	}
	return s
}

// wrapStyled breaks a text into lines, each with its own styles.
func wrapStyled(s string, width int) []string {
	return strings.Split(lipgloss.Wrap(s, width, ""), "\n")
}

// prefixed puts one text before the first line and another before those that follow.
func prefixed(lines []string, first, rest string) []string {
	for i, l := range lines {
		prefix := rest
		if i == 0 {
			prefix = first
		}
		lines[i] = strings.TrimRight(prefix+l, " ")
	}
	return lines
}
