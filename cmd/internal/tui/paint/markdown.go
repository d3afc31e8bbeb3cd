//go:build unix

package paint

import (
	"strings"

	"anamnesis/cmd/internal/term"

	"charm.land/glamour/v2"
	"charm.land/glamour/v2/ansi"
	"charm.land/glamour/v2/styles"
	xansi "github.com/charmbracelet/x/ansi"
)

// Markdown renders a model's words. The zero value renders them as they are.
type Markdown struct {
	width int
	theme string // dark, light or none
	r     *glamour.TermRenderer
}

// Fit makes a renderer for a width and a theme.
func (md *Markdown) Fit(width int, theme string) {
	if md.r != nil && md.width == width && md.theme == theme {
		return
	}
	md.width, md.theme = width, theme
	style := style(theme)
	md.r, _ = glamour.NewTermRenderer(glamour.WithStyles(style), glamour.WithWordWrap(max(width-2, 10))) // nil: as it is
}

// style is a theme in the terminal's own colours, flush left; only code has others.
func style(theme string) ansi.StyleConfig {
	var s ansi.StyleConfig
	switch theme {
	case "light":
		s = styles.LightStyleConfig
	case "none":
		s = styles.NoTTYStyleConfig
	default:
		s = styles.DarkStyleConfig
	}
	zero, yes := uint(0), true
	s.Document.Margin, s.Document.BlockPrefix, s.Document.BlockSuffix, s.Document.Color = &zero, "", "", nil
	s.CodeBlock.Margin = &zero
	if theme != "none" {
		blue := "4"
		s.Heading.Color, s.Heading.Bold = &blue, &yes
		s.H1 = ansi.StyleBlock{}
		s.H1.Color, s.H1.Bold = &blue, &yes
		s.Code.BackgroundColor, s.Code.Prefix, s.Code.Suffix = nil, "", ""
		cyan := "6"
		s.Code.Color = &cyan
	}
	return s
}

// Render returns lines without an empty one at either end.
func (md *Markdown) Render(text string) []string {
	text = term.Clean(text)
	if md.r != nil {
		if out, err := md.r.Render(text); err == nil {
			text = out
		}
	}
	lines := strings.Split(text, "\n")
	for i, l := range lines { // the padding would wrap in a narrower window
		lines[i] = xansi.Truncate(l, xansi.StringWidth(strings.TrimRight(Strip(l), " ")), "")
	}
	blank := func(l string) bool { return strings.TrimSpace(Strip(l)) == "" }
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// Settled returns how much of a growing markdown text will not be rendered in another
// way by what follows: up to the last empty line outside a block of code and a list.
func Settled(text string) int {
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
			if !list && strings.HasSuffix(line, "\n") {
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

// isItem reports whether a line begins an item of a list.
func isItem(line string) bool {
	if len(line) > 1 && strings.ContainsRune("-*+", rune(line[0])) && line[1] == ' ' {
		return true
	}
	digits := strings.TrimLeft(line, "0123456789")
	return len(digits) < len(line) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") "))
}
