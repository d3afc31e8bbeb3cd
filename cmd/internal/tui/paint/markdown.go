//go:build unix

package paint

import (
	"fmt"
	"slices"
	"strings"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
	"github.com/charmbracelet/x/ansi"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"anamnesis/cmd/internal/term"
)

// Markdown renders a model's text to the width that Fit has set.
//
// It walks goldmark's tree itself. Glamour, which renders the same, loads every language and
// style it knows before main, which was a third of the time that each start of the program took.
type Markdown struct {
	width int
	plain bool // without colours
}

// Fit sets the width and the theme: dark, light or none.
func (md *Markdown) Fit(width int, theme string) {
	md.width, md.plain = width, theme == "none"
}

// Render returns lines without an empty one at either end.
func (md *Markdown) Render(src string) []string {
	r := renderer{[]byte(term.Clean(src)), md.plain}
	doc := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(r.src))
	lines := r.blocks(doc, max(md.width-2, 10), true)
	blank := func(l string) bool { return strings.TrimSpace(Strip(l)) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// renderer renders a markdown tree as lines for the terminal.
type renderer struct {
	src   []byte
	plain bool
}

var (
	heading = Blue.Bold(true)
	italic  = lipgloss.NewStyle().Italic(true)
	struck  = ansi.NewStyle().Strikethrough(true) // a lipgloss style would style each letter alone
	linked  = ansi.NewStyle().Underline(true)
)

func (r renderer) paint(s lipgloss.Style, text string) string {
	if r.plain || text == "" {
		return text
	}
	return s.Render(text)
}

func (r renderer) line(s ansi.Style, text string) string {
	if r.plain || text == "" {
		return text
	}
	return s.Styled(text)
}

// blocks renders the blocks in n, with an empty line between two if apart is true.
func (r renderer) blocks(n ast.Node, width int, apart bool) (lines []string) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		block := r.block(c, max(width, 8))
		if apart && len(lines) > 0 && len(block) > 0 {
			lines = append(lines, "")
		}
		lines = append(lines, block...)
	}
	return lines
}

func (r renderer) block(n ast.Node, width int) []string {
	switch n := n.(type) {
	case *ast.Heading:
		mark := ""
		if n.Level > 1 {
			mark = strings.Repeat("#", n.Level) + " "
		}
		return wrapStyled(r.paint(heading, mark+Strip(r.inline(n))), width)
	case *ast.Paragraph, *ast.TextBlock:
		return wrapStyled(r.inline(n), width)
	case *ast.Blockquote:
		return prefix(r.blocks(n, width-2, true), r.paint(Faint, "│ "), r.paint(Faint, "│ "))
	case *ast.List:
		return r.list(n, width)
	case *ast.FencedCodeBlock:
		return r.code(n, string(n.Language(r.src)))
	case *ast.CodeBlock:
		return r.code(n, "")
	case *ast.HTMLBlock:
		lines := r.code(n, "")
		if n.HasClosure() {
			lines = append(lines, strings.TrimRight(string(n.ClosureLine.Value(r.src)), "\n"))
		}
		return lines
	case *ast.ThematicBreak:
		return []string{r.paint(Faint, strings.Repeat("─", min(width, 24)))}
	case *extast.Table:
		return r.table(n, width)
	}
	return r.blocks(n, width, true)
}

// list indents the lines of an item below its text.
func (r renderer) list(n *ast.List, width int) (lines []string) {
	number := n.Start
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		mark := "• "
		if n.IsOrdered() {
			mark = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}
		if !n.IsTight && len(lines) > 0 {
			lines = append(lines, "")
		}
		body := r.blocks(item, width-len([]rune(mark)), !n.IsTight)
		lines = append(lines, prefix(body, mark, strings.Repeat(" ", len([]rune(mark))))...)
	}
	return lines
}

// code returns the lines of a block of code, which are not wrapped.
func (r renderer) code(n ast.Node, language string) []string {
	code := strings.ReplaceAll(strings.TrimRight(string(n.Lines().Value(r.src)), "\n"), "\t", "    ")
	if r.plain {
		return strings.Split(code, "\n")
	}
	return Code(code, language)
}

func (r renderer) table(n *extast.Table, width int) []string {
	t := table.New().BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).StyleFunc(
		func(_, col int) lipgloss.Style {
			align := lipgloss.Left
			switch n.Alignments[col] {
			case extast.AlignRight:
				align = lipgloss.Right
			case extast.AlignCenter:
				align = lipgloss.Center
			}
			return lipgloss.NewStyle().Padding(0, 1).Align(align)
		})
	for row := n.FirstChild(); row != nil; row = row.NextSibling() {
		var cells []string
		for c := row.FirstChild(); c != nil && len(cells) < len(n.Alignments); c = c.NextSibling() {
			cells = append(cells, r.inline(c))
		}
		if row.Kind() == extast.KindTableHeader {
			t.Headers(cells...)
		} else {
			t.Row(cells...)
		}
	}
	out := t.Render()
	if lipgloss.Width(out) > width {
		out = t.Width(width).Render()
	}
	return strings.Split(out, "\n")
}

// inline renders the text in n, and cleans the characters that entities stand for.
func (r renderer) inline(n ast.Node) string {
	var sb strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		switch c := c.(type) {
		case *ast.Text:
			value := c.Value(r.src)
			// Code and other raw text keep their backslashes and entities.
			if !c.IsRaw() {
				value = util.UnescapePunctuations(util.ResolveEntityNames(util.ResolveNumericReferences(value)))
			}
			sb.WriteString(term.Clean(string(value)))
			switch {
			case c.HardLineBreak():
				sb.WriteByte('\n')
			case c.SoftLineBreak():
				sb.WriteByte(' ')
			}
		case *ast.String:
			sb.WriteString(term.Clean(string(c.Value)))
		case *ast.CodeSpan:
			sb.WriteString(r.paint(Cyan, r.inline(c)))
		case *ast.Emphasis:
			if c.Level > 1 {
				sb.WriteString(r.paint(Bold, r.inline(c)))
			} else {
				sb.WriteString(r.paint(italic, r.inline(c)))
			}
		case *extast.Strikethrough:
			sb.WriteString(r.line(struck, r.inline(c)))
		case *extast.TaskCheckBox:
			if c.IsChecked {
				sb.WriteString("[✓] ")
			} else {
				sb.WriteString("[ ] ")
			}
		case *ast.Link:
			sb.WriteString(r.address(r.inline(c), c.Destination))
		case *ast.Image:
			sb.WriteString(r.address("image: "+r.inline(c), c.Destination))
		case *ast.AutoLink:
			sb.WriteString(r.line(linked, string(c.Label(r.src))))
		case *ast.RawHTML:
			sb.Write(c.Segments.Value(r.src))
		default:
			sb.WriteString(r.inline(c))
		}
	}
	return sb.String()
}

// address shows where a link leads, unless its text says so.
func (r renderer) address(text string, destination []byte) string {
	to := term.Clean(string(destination))
	if to == "" || Strip(text) == to {
		return r.line(linked, text)
	}
	return r.line(linked, text) + r.paint(Faint, " ("+to+")")
}

// wrapStyled wraps a styled text; each line begins and ends its own styles.
func wrapStyled(s string, width int) []string {
	return strings.Split(lipgloss.Wrap(s, width, ""), "\n")
}

// prefix puts first before the first line and rest before the others.
func prefix(lines []string, first, rest string) []string {
	if len(lines) == 0 {
		return []string{strings.TrimRight(first, " ")}
	}
	out := slices.Clone(lines)
	for i, l := range lines {
		if i == 0 {
			out[i] = first + l
		} else {
			out[i] = strings.TrimRight(rest+l, " ")
		}
	}
	return out
}

// StablePrefix returns the length of the part of a growing markdown text whose rendering later
// text cannot change: up to the last empty line outside code blocks and lists.
func StablePrefix(text string) int {
	at, fence, list, begin := 0, "", false, 0
	for line := range strings.Lines(text) {
		end := begin + len(line)
		trimmed := strings.TrimSpace(line)
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) {
				fence = ""
			}
		case strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
		case trimmed == "":
			if !list && strings.HasSuffix(line, "\n") { // an item may go on after an empty line
				at = end
			}
		case isItem(trimmed):
			list = true
		case line[0] != ' ' && line[0] != '\t':
			if list && strings.HasSuffix(text[:begin], "\n\n") {
				at = begin // the list has ended
			}
			list = list && !strings.HasSuffix(text[:begin], "\n\n")
		}
		begin = end
	}
	return at
}

func isItem(line string) bool {
	if len(line) > 1 && strings.ContainsRune("-*+", rune(line[0])) && line[1] == ' ' {
		return true
	}
	digits := strings.TrimLeft(line, "0123456789")
	return len(digits) < len(line) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") "))
}
