//go:build unix

// Package result words calls and their results for the user.
package result

import (
	"fmt"
	"strings"
	"time"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/tool"
)

// ToUser rewords a text that the program wrote for the model, for the user.
func ToUser(text string) string {
	if strings.HasPrefix(text, strings.TrimSpace(notice.EditedNote(""))) { // the user knows
		_, text, _ = strings.Cut(text, "\n\n")
	}
	return strings.NewReplacer("Not run: the user interrupted the turn.", "You interrupted the turn before it began.",
		"Interrupted by the user while it", "You interrupted it while it", "The user chose ",
		"You chose ").Replace(text)
}

// Prints reports whether a result is what a program printed, or an MCP server returned: a user sees
// it folded, and in full with /out.
func Prints(b *op.ToolReturned) bool {
	return b.Exit != nil || strings.HasPrefix(b.Name, tool.MCPPrefix) && !b.Refused
}

// Exited describes how a command ended: its exit code and duration, or what ended it.
func Exited(b *op.ToolReturned) string {
	if b.Exit == nil {
		return Duration(b.Millis)
	}
	if notice.Halted(b) != "" {
		how, _, _ := strings.Cut(b.Display, ":")
		return how
	}
	return strings.TrimSuffix(fmt.Sprintf("exit %d · %s", *b.Exit, Duration(b.Millis)), " · ")
}

// Call returns a call as one line, its name in bold.
func Call(c op.Call, dir string) string {
	if line := term.Command(c.Args); line != "" {
		return paint.Bold.Render(term.Clean(c.Name)) + " " + strings.Join(strings.Fields(term.Clean(line)), " ")
	}
	name, rest, ok := strings.Cut(tool.Display(c, dir), "(")
	if !ok {
		return paint.Bold.Render(name)
	}
	return paint.Bold.Render(name) + " " + strings.TrimSuffix(rest, ")")
}

// Duration returns how long a call ran; empty if it was short.
func Duration(ms int64) string {
	d := time.Duration(ms) * time.Millisecond
	switch {
	case d < 100*time.Millisecond:
		return ""
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	return d.Round(time.Second).String()
}
