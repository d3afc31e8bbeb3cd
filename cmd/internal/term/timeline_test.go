package term

import (
	"os"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
)

// branching is a task that goes two steps down a path, jumps back and goes
// another way.
func branching(t *testing.T) timeline.Timeline {
	t.Helper()
	bodies := []struct {
		step int
		body op.Body
	}{
		{0, &op.TaskOpened{Task: "task_1_fix", Dir: "/w", Model: "m", EAS: 4000}},
		{0, &op.UserSaid{Text: "Fix it.", Source: op.SourceRequest}},
		{0, &op.CardsRecalled{Why: "start", Cards: []op.CardRef{{ID: "1", Topic: "\x1b[31mred"}}}},
		{0, &op.WorldSaved{Commit: "c0"}},
		{1, &op.ModelReplied{Calls: []op.Call{{ID: "a", Name: "Bash"}}, Finish: "tool_calls"}},
		{1, &op.ToolReturned{Call: "a", Name: "Bash", Exit: new(int)}},
		{1, &op.WorldSaved{Parent: 0, Commit: "c1"}},
		{2, &op.ModelReplied{Calls: []op.Call{{ID: "b", Name: "jump_to_step"}}, Finish: "tool_calls"}},
		{2, &op.ToolReturned{Call: "b", Name: "jump_to_step"}},
		{2, &op.WorldSaved{Parent: 1, Commit: "c2"}},
		{3, &op.PassDone{Ranges: []op.Range{{First: 5, Last: 10}}, RangeTokens: 5000, EAS: 4000, Trigger: "jump", Block: "b", Writer: "model", Cards: []string{"card1"}}},
		{3, &op.JumpIntended{From: 2, To: 0, Backward: true}},
		{3, &op.JumpDone{From: 2, To: 0, Backward: true, NReverted: 2}},
		{3, &op.UserSaid{Text: "Mind the\ntabs.", Source: op.SourceSteer}},
		{3, &op.ModelReplied{Text: "Done.", Finish: "stop"}},
		{3, &op.WorldSaved{Parent: 0, Commit: "c3"}},
		{4, &op.TurnEnded{Reason: "done"}},
	}
	b := new(timeline.Builder)
	for i, x := range bodies {
		if err := b.Add(op.Op{Seq: uint64(i + 1), Step: x.step, Tok: 10, Body: x.body}); err != nil {
			t.Fatal(err)
		}
	}
	return b.Timeline()
}

// TestTimeline holds the drawing; UPDATE_GOLDEN=1 rewrites it.
func TestTimeline(t *testing.T) {
	tl := branching(t)
	got := ansi.Strip(Draw(tl, 110)) + "\n\n" + ansi.Strip(Draw(tl, 60)) + "\n"
	const path = "testdata/timeline.txt"
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the drawing differs from %s:\n%s", path, got)
	}
	tl.Rows[1].First, tl.Rows[1].Last = 12345, 12399 // wider than the column of operations
	for _, width := range []int{110, 60, 20} {
		for line := range strings.SplitSeq(Draw(tl, width), "\n") {
			if w := ansi.StringWidth(line); w > width {
				t.Errorf("at %d columns a line is %d wide: %q", width, w, line)
			}
		}
	}
}
