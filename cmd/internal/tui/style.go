//go:build unix

package tui

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// The terminal's own sixteen colours, so that light and dark themes both work.
var (
	faint  = lipgloss.NewStyle().Faint(true)
	bold   = lipgloss.NewStyle().Bold(true)
	red    = lipgloss.NewStyle().Foreground(lipgloss.Red)
	green  = lipgloss.NewStyle().Foreground(lipgloss.Green)
	yellow = lipgloss.NewStyle().Foreground(lipgloss.Yellow)
	blue   = lipgloss.NewStyle().Foreground(lipgloss.Blue)
	cyan   = lipgloss.NewStyle().Foreground(lipgloss.Cyan)
	purple = lipgloss.NewStyle().Foreground(lipgloss.Magenta)
)

// stripped is a text without styles.
func stripped(s string) string { return ansi.Strip(s) }

// cut shortens a styled text to a width.
func cut(s string, width int) string { return ansi.Truncate(s, max(width, 1), "…") }

// wrap breaks a styled text into lines of at most width columns, at words where it can.
func wrap(s string, width int) []string {
	return strings.Split(ansi.Wrap(strings.ReplaceAll(s, "\t", "    "), max(width, 8), ""), "\n")
}

// size shows a number of bytes.
func size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// count shows a number of tokens.
func count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%dk", n/1000)
}

// plural is a number with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
