package notice

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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
		{op.ToolReturned{IsError: true, Text: CutShort(because(&Eviction{Err: ErrTerminated})) + ": it may have taken effect in part."}, "program stopped"},
		{op.ToolReturned{IsError: true, Text: CutShort(because(fmt.Errorf("%w from the page", ErrStopped))) + "."}, "stopped"},
		{op.ToolReturned{Exit: &exit, Display: "ended because the program was asked to stop (SIGTERM): the command was ended"}, "program stopped"},
		{op.ToolReturned{Exit: &exit, Display: "ended because the time limit of --max-time is reached: the command was ended"}, "time limit"},
		{op.ToolReturned{IsError: true, Refused: true, Text: "Refused by the user."}, ""},
		{op.ToolReturned{Text: "Not run: the user interrupted the turn."}, ""},
	} {
		if got := Halted(&tt.result); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.result, got, tt.want)
		}
	}
}

// TestFinishing: a call goes on for the grace period if the program is asked to stop, until the user
// asks once more, and ends at once if the user or the time limit ends it.
func TestFinishing(t *testing.T) {
	hurry := make(chan struct{})
	close(hurry)
	for _, tt := range []struct {
		cause error
		grace time.Duration
		want  time.Duration
	}{
		{ErrTerminated, 0, DefaultGrace},
		{fmt.Errorf("%w from the page", ErrStopped), 0, DefaultGrace},
		{&Eviction{Err: ErrLost}, time.Minute, time.Minute},
		{&Eviction{Err: ErrTerminated}, -1, 0},
		{&Eviction{Err: ErrTerminated, Hurry: hurry}, time.Hour, 0},
		{ErrTimeUp, time.Hour, 0},
		{nil, time.Hour, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			calling, end := Finishing(ctx, tt.grace)
			defer end()
			begun := time.Now()
			cancel(tt.cause)
			<-calling.Done()
			if took := time.Since(begun); took != tt.want || !errors.Is(context.Cause(calling), context.Cause(ctx)) {
				t.Errorf("%v with %v: ended after %v with %v, want %v", tt.cause, tt.grace, took,
					context.Cause(calling), tt.want)
			}
		})
	}
}
