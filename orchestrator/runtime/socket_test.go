package runtime

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// TestSocketInADeepHome: a path longer than a Unix address still listens and
// is reached; an old socket of a dead process is replaced.
func TestSocketInADeepHome(t *testing.T) {
	task, _ := newTask(t, "turns:\n  - reply: Done.\n", Options{})
	h := taskdir.Home{State: filepath.Join(t.TempDir(), strings.Repeat("deep/", 40))}
	if err := os.MkdirAll(h.Task("t"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.Socket("t"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := taskdir.Send(t.Context(), h, "t", taskdir.Command{Verb: "say", Text: "x"}); !errors.Is(err, taskdir.ErrNotLive) {
		t.Errorf("before it listens: %v", err)
	}
	turn, end := context.WithCancelCause(t.Context())
	stop, err := task.Ledger.Serve(context.Background(), h, end)
	if err != nil {
		t.Fatal(err)
	}
	if err := taskdir.Send(t.Context(), h, "t", taskdir.Command{Verb: "say", Text: "hello"}); err != nil {
		t.Errorf("say: %v", err)
	}
	if err := taskdir.Send(t.Context(), h, "t", taskdir.Command{Verb: "jump", JumpRequested: op.JumpRequested{To: 5}}); !errors.Is(err, state.ErrNoStep) {
		t.Errorf("jump to an unknown step: %v", err)
	}
	var remote *taskdir.RemoteError
	if err := taskdir.Send(t.Context(), h, "t", taskdir.Command{Verb: "dance"}); !errors.As(err, &remote) ||
		!strings.Contains(remote.Text, "dance") {
		t.Errorf("an unknown command: %v", err)
	}
	if err := taskdir.Send(t.Context(), h, "t", taskdir.Command{Verb: "stop", From: "a test"}); err != nil ||
		notice.EndedBy(turn) != "the user stopped the turn from a test" {
		t.Errorf("stop: %v, %v", err, context.Cause(turn))
	}
	stop()
	if err := taskdir.Send(t.Context(), h, "t", taskdir.Command{Verb: "say", Text: "x"}); !errors.Is(err, taskdir.ErrNotLive) {
		t.Errorf("after it stopped: %v", err)
	}
}
