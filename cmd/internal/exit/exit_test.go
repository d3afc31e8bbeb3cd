package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"anamnesis/opstream"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// TestCode: an error keeps its exit code however it is wrapped; a code that a command gives goes first.
func TestCode(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int
	}{
		{errors.New("x"), Failed},
		{session.Usagef("x"), Usage},
		{taskdir.ErrNoTask, Usage},
		{worldstate.ErrNoDirectory, Usage},
		{taskdir.ErrBusy, Refused},
		{opstream.ErrLocked, Refused},
		{opstream.ErrCorrupt, Corrupt},
		{fmt.Errorf("%w: %w", opstream.ErrCorrupt, taskdir.ErrNoTask), Corrupt},
		{worldstate.ErrFull, Limit},
		{context.Canceled, Interrupted},
		{With(Stuck, taskdir.ErrNoTask), Stuck},
		{Report(Usagef("x")), Usage},
	} {
		if got := Code(fmt.Errorf("run: %w", tt.err)); got != tt.want {
			t.Errorf("Code(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestWithoutSignal(t *testing.T) {
	for text, want := range map[string]string{
		"context canceled":                "interrupted",
		"save: context canceled":          "interrupted: save",
		"save: x: context canceled: more": "interrupted: save: x: more",
	} {
		if got := WithoutSignal(text); got != want {
			t.Errorf("WithoutSignal(%q) = %q, want %q", text, got, want)
		}
	}
}
