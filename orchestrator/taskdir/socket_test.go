package taskdir

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// TestSend: a task that runs gets the whole command; of its refusal the text arrives, and the errors that callers
// branch on.
func TestSend(t *testing.T) {
	h := Home{State: t.TempDir()}
	if err := os.MkdirAll(h.Task("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Send(t.Context(), h, "t", Command{Verb: "say"}); !errors.Is(err, ErrNotLive) {
		t.Errorf("without a process: %v", err)
	}
	var got Command
	var answer error
	stop, err := Serve(h.Socket("t"), func(c Command) error {
		got = c
		return answer
	})
	if err != nil {
		t.Fatal(err)
	}
	sent := Command{Verb: "jump", Text: "text", From: "here", JumpRequested: op.JumpRequested{To: 3, Reason: "r"}}
	if err := Send(t.Context(), h, "t", sent); err != nil || got.Verb != sent.Verb || got.Text != sent.Text ||
		got.From != sent.From || got.To != 3 || got.Reason != "r" {
		t.Errorf("sent %+v, %v; arrived %+v", sent, err, got)
	}
	other := errors.New("other")
	for _, target := range []error{state.ErrNoStep, ErrPending, ErrAnswered, ErrNoQuestion, other} {
		answer = fmt.Errorf("refused: %w", target)
		err := Send(t.Context(), h, "t", sent)
		var remote *RemoteError
		if !errors.As(err, &remote) || err.Error() != answer.Error() || errors.Is(err, target) != (target != other) {
			t.Errorf("%v arrived as %v", answer, err)
		}
	}
	answer, got = nil, Command{}
	if err := Send(t.Context(), h, "t", Command{Verb: "say", Text: strings.Repeat("x", maxCommandBytes)}); err == nil ||
		got.Verb != "" {
		t.Errorf("a command that is too long: %v", err)
	}
	stop()
	if err := Send(t.Context(), h, "t", sent); !errors.Is(err, ErrNotLive) {
		t.Errorf("after the end: %v", err)
	}
	if _, err := os.Lstat(h.Socket("t")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}

	// The path of a socket may be longer than an address can be.
	long := Home{State: h.State + "/" + strings.Repeat("long/", 30)}
	if err := os.MkdirAll(long.Task("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	stop, err = Serve(long.Socket("t"), func(Command) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := Send(t.Context(), long, "t", sent); err != nil {
		t.Errorf("to a long path: %v", err)
	}
}
