package beside

import (
	"encoding/json"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/sessions"
)

// TestMatch: a result of an agent without ids belongs to the oldest open call with its tool and
// arguments; other events keep their ids.
func TestMatch(t *testing.T) {
	of := func(input string) event {
		return event{
			Agent: sessions.Gemini, Name: "PostToolUse", ToolName: "ls", ToolInput: json.RawMessage(input),
			ToolUseID: "own",
		}
	}
	here, there := of(`{"dir":"."}`), of(`{"dir":".."}`)
	open := []op.Call{
		{ID: geminiCall(&there) + "_1"}, {ID: geminiCall(&here) + "x_2"}, {ID: geminiCall(&here) + "_3"},
		{ID: geminiCall(&here) + "_4"},
	}
	for _, tt := range []struct {
		name   string
		change func(e *event)
		open   []op.Call
		want   string
	}{
		{"the oldest", func(*event) {}, open, open[2].ID},
		{"none is open", func(*event) {}, open[:2], "own"},
		{"another tool", func(e *event) { e.ToolName = "rm" }, open, "own"},
		{"before the call", func(e *event) { e.Name = "PreToolUse" }, open, "own"},
		{"another agent", func(e *event) { e.Agent = sessions.Claude }, open, "own"},
	} {
		e := here
		tt.change(&e)
		if e.match(tt.open); e.ToolUseID != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, e.ToolUseID, tt.want)
		}
	}
}
