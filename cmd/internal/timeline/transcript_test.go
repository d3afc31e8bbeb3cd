package timeline

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
)

// TestTranscriptHidden: a line in the place of others says how many they are, or, where the
// recorded text lacks a part itself, how large the whole was.
func TestTranscriptHidden(t *testing.T) {
	exit := 0
	for _, row := range []struct {
		lines int
		cut   int64
		want  string
	}{
		{40, 0, "```\nx\n"},
		{41, 0, "```\nx\n"}, // no line is replaced by a line
		{42, 0, "```\n… 2 lines\nx\n"},
		{140, 0, "```\n… 100 lines\nx\n"},
		{140, 5000, "```\n… 5279 bytes in all\nx\n"},
		{3, 5000, "```\nx\n"},
	} {
		var out strings.Builder
		tr := NewTranscript(&out)
		text := strings.TrimSuffix(strings.Repeat("x\n", row.lines), "\n")
		if err := tr.Add(op.Op{Body: &op.ToolReturned{Call: "c", Name: "Bash", Text: text, Exit: &exit, Cut: row.cut}}); err != nil {
			t.Fatal(err)
		}
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), row.want) || row.lines < 42 && strings.Contains(out.String(), "…") {
			t.Errorf("%d lines, %d cut: %q; want %q", row.lines, row.cut, out.String(), row.want)
		}
	}
}
