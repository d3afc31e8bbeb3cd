package notice

import (
	"context"
	"testing"

	"anamnesis/opstream/op"
)

// TestHalted: what ended a call is named, but not by what the call itself printed.
func TestHalted(t *testing.T) {
	because := func(cause error) context.Context {
		ctx, end := context.WithCancelCause(t.Context())
		end(cause)
		return ctx
	}
	exit := 143
	for _, tt := range []struct {
		result op.ToolReturned
		want   string
	}{
		{op.ToolReturned{Exit: &exit, Display: "timed out after 1s: the command was ended"}, "timed out"},
		{op.ToolReturned{Exit: &exit, Display: "interrupted: the command was ended"}, "interrupted"},
		{op.ToolReturned{Exit: &exit, IsError: true, Display: "exit 143", Text: "Interrupted by the user while it ran"}, ""},
		{op.ToolReturned{IsError: true, Refused: true, Text: "Not run: " + EndedBy(because(nil)) + "."}, "interrupted"},
		{op.ToolReturned{IsError: true, Text: "half\n" + CutShort(because(nil)) + ": it may have taken effect in part."}, "interrupted"},
		{op.ToolReturned{IsError: true, Text: "Not run: " + EndedBy(because(ErrTimeUp)) + "."}, "time limit"},
		{op.ToolReturned{IsError: true, Text: CutShort(because(ErrTimeUp)) + ": it may have taken effect in part."}, "time limit"},
		{op.ToolReturned{IsError: true, Text: "Not run: " + EndedBy(because(ErrLost)) + "."}, "terminal lost"},
		{op.ToolReturned{IsError: true, Refused: true, Text: "Refused by the user."}, ""},
		{op.ToolReturned{Text: "Not run: the user interrupted the turn."}, ""},
	} {
		if got := Halted(&tt.result); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.result, got, tt.want)
		}
	}
}
