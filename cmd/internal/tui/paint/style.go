//go:build unix

// Package paint renders what a session shows: markdown, diffs, widths and colours.
package paint

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// The terminal's own sixteen colours, so that light and dark themes both work.
var (
	Faint  = lipgloss.NewStyle().Faint(true)
	Bold   = lipgloss.NewStyle().Bold(true)
	Red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	Green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	Yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	Blue   = lipgloss.NewStyle().Foreground(lipgloss.Blue)
	Cyan   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	Purple = lipgloss.NewStyle().Foreground(lipgloss.Magenta)
)

func Strip(s string) string { return ansi.Strip(s) }

func Cut(s string, width int) string { return ansi.Truncate(s, max(width, 1), "…") }

// Wrap breaks a styled text into lines of at most width columns, at words where it can.
func Wrap(s string, width int) []string {
	width = max(width, 8)
	lines := strings.Split(ansi.Wrap(strings.ReplaceAll(s, "\t", "    "), width, ""), "\n")
	for i, l := range lines {
		if lipgloss.Width(l) > width && strings.HasSuffix(Strip(l), " ") { // the space at which it was broken
			lines[i] = ansi.Truncate(l, width, "")
		}
	}
	return lines
}

// Flow lays out parts on lines of at most width columns, with dots between them. Each part is
// whole on one line if it fits.
func Flow(parts []string, width int) (lines []string) {
	line := ""
	for _, part := range parts {
		switch next := line + Faint.Render(" · ") + part; {
		case line == "":
			line = part
		case lipgloss.Width(next) <= width:
			line = next
		default:
			lines, line = append(lines, line), part
		}
	}
	return append(lines, Wrap(line, width)...)
}

func Count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%dk", n/1000)
}
