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

// Strip returns a text without styles.
func Strip(s string) string { return ansi.Strip(s) }

// Cut shortens a styled text to a width.
func Cut(s string, width int) string { return ansi.Truncate(s, max(width, 1), "…") }

// Wrap breaks a styled text into lines of at most width columns, at words where it can.
func Wrap(s string, width int) []string {
	return strings.Split(ansi.Wrap(strings.ReplaceAll(s, "\t", "    "), max(width, 8), ""), "\n")
}

// Size shows a number of bytes.
func Size(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// Count shows a number of tokens.
func Count(n int) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 100_000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%dk", n/1000)
}
