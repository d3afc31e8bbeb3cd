package exit

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"anamnesis/opstream"
	"anamnesis/orchestrator/remedy"
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

// TestInBucket: what a user is told to run about a task in a bucket names the bucket; a command that knows no buckets
// is not named.
func TestInBucket(t *testing.T) {
	for _, tt := range []struct {
		err         error
		here, there string
	}{
		{remedy.With(taskdir.ErrNotLive, remedy.Request, "t"), `; 'anamnesis resume t "…"' continues it with your words`,
			`; 'anamnesis resume --remote s3://b/p t "…"' continues it with your words`},
		{remedy.With(taskdir.ErrNotLive, remedy.ListTasks, ""), "; 'anamnesis tasks' lists them", "; 'anamnesis tasks --remote s3://b/p' lists them"},
		{remedy.With(taskdir.ErrNotLive, remedy.Salvage, "t"), "; 'anamnesis doctor t' lists what is intact, and copies it", ""},
		{remedy.With(taskdir.ErrNotLive, remedy.OtherModel, ""), "; --model names another", "; --model names another"},
		{taskdir.ErrNotLive, "", ""},
	} {
		if here, got := Text(tt.err), TextOf(tt.err, "s3://b/p"); here != taskdir.ErrNotLive.Error()+tt.here ||
			got != taskdir.ErrNotLive.Error()+tt.there {
			t.Errorf("%q and %q, want %q and %q", here, got, tt.here, tt.there)
		}
	}
}
