package journal_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/taskdir"
)

func openLedger(t *testing.T) *journal.Ledger {
	t.Helper()
	root := t.TempDir()
	h := taskdir.Home{User: root, State: root, Data: root, Config: root}
	count, err := tokens.ForEncoding("r50k_base")
	if err != nil {
		t.Fatal(err)
	}
	o := journal.Options{Count: count.Count, Learned: new(redact.Learned)}
	o.Stream.Now = time.Now
	l, err := journal.OpenLedger(h, "t", count, 0, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestClosed: whatever would record in a closed journal reports that it did not.
func TestClosed(t *testing.T) {
	l, ctx, end := openLedger(t), t.Context(), &op.TurnEnded{Reason: "done"}
	if err := l.Record(ctx, &op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.WorldSaved{},
		&op.QuestionAsked{About: op.AboutAnswer}); err != nil {
		t.Fatal(err)
	}
	if err := l.Journal.Close(); err != nil {
		t.Fatal(err)
	}
	for name, record := range map[string]func() error{
		"Post":    func() error { return l.Journal.Post(ctx, end) },
		"PostSeq": func() error { _, err := l.Journal.PostSeq(ctx, end); return err },
		"PostWith": func() error {
			return l.Journal.PostWith(ctx, func([]op.Op) ([]op.Body, error) { return []op.Body{end}, nil })
		},
		"Record": func() error { return l.Record(ctx, end) },
		"Say":    func() error { return l.Say(ctx, "go", op.SourceSteer) },
		"Jump":   func() error { return l.Jump(ctx, op.JumpRequested{By: op.ByUser}) },
		"Answer": func() error { return l.Answer(ctx, &op.QuestionAnswered{Asked: 4}) },
		"Resume": func() error { return l.Resume(ctx, "go", new(op.TaskResumed)) },
		"Result": func() error { return l.PostResult(ctx, nil, nil, &op.ToolReturned{Call: "c"}) },
	} {
		if err := record(); !errors.Is(err, taskdir.ErrNotLive) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if seq := l.State().Last; seq != 4 {
		t.Errorf("the state is at operation %d", seq)
	}
}

// TestObey: a command that cannot be obeyed leaves no record; one that was sent by a bucket is recorded before its effect.
func TestObey(t *testing.T) {
	l := openLedger(t)
	defer l.Journal.Close()
	if l.Advanced() {
		t.Error("a new ledger has advanced")
	}
	if err := l.Record(t.Context(), &op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.WorldSaved{}); err != nil {
		t.Fatal(err)
	}
	if !l.Advanced() {
		t.Error("a ledger with operations has not advanced")
	}
	for _, tt := range []struct {
		name string
		c    taskdir.Command
		want string // the error
		ends bool   // the turn
		more uint64 // operations
	}{
		{"unknown", taskdir.Command{Verb: "dance"}, "unknown command", false, 0},
		{"no answer", taskdir.Command{Verb: "answer"}, "no answer", false, 0},
		{"a jump to no step", taskdir.Command{Verb: "jump", JumpRequested: op.JumpRequested{To: 7}}, "no such checkpoint: step 7", false, 0},
		{"a jump", taskdir.Command{Verb: "jump", JumpRequested: op.JumpRequested{To: 0}}, "", false, 1},
		{"a second jump", taskdir.Command{Verb: "jump", JumpRequested: op.JumpRequested{To: 0}}, "a jump", false, 0},
		{"stop", taskdir.Command{Verb: "stop", From: "page"}, "", true, 0},
		{"a sent stop", taskdir.Command{Verb: "stop", From: "bucket", Sent: new(op.Sent)}, "", true, 1},
	} {
		before, ended := l.State().Last, error(nil)
		err := l.Obey(t.Context(), tt.c, func(why error) { ended = why })
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if errors.Is(ended, notice.ErrStopped) != tt.ends {
			t.Errorf("%s: the turn is ended by %v", tt.name, ended)
		}
		if err := l.ApplyQueued(); err != nil || l.State().Last != before+tt.more {
			t.Errorf("%s: %d operations, want %d: %v", tt.name, l.State().Last-before, tt.more, err)
		}
	}
}

// TestPostResultSchedulesOneJump: the jump that a call requests is recorded before its result; a
// second one in the same step, folded or not, is dropped, and its result is an error.
func TestPostResultSchedulesOneJump(t *testing.T) {
	l := openLedger(t)
	defer l.Journal.Close()
	calls := []op.Call{
		{ID: "c1", Name: "jump_to_step", Args: "{}"}, {ID: "c2", Name: "send_dmail", Args: "{}"},
		{ID: "c3", Name: "jump_to_step", Args: "{}"},
	}
	if err := l.Record(t.Context(), &op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.WorldSaved{},
		&op.ModelAsked{LastSeq: 3}, &op.ModelReplied{Calls: calls}); err != nil {
		t.Fatal(err)
	}
	begun := l.State().Last
	post := func(call op.Call, j op.JumpRequested) {
		t.Helper()
		j.By, j.Call = op.ByAgent, call.ID
		if err := l.PostResult(t.Context(), nil, &j, &op.ToolReturned{Call: call.ID, Name: call.Name, Text: "Scheduled."}); err != nil {
			t.Fatal(err)
		}
	}
	post(calls[0], op.JumpRequested{})
	post(calls[1], op.JumpRequested{Mail: &op.Mail{}}) // nothing is folded yet
	if err := l.ApplyQueued(); err != nil {
		t.Fatal(err)
	}
	post(calls[2], op.JumpRequested{})
	if err := l.ApplyQueued(); err != nil {
		t.Fatal(err)
	}
	ops, err := l.Ops(op.Range{First: begun + 1, Last: l.State().Last})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range ops {
		text := string(o.Kind())
		if b, ok := o.Body.(*op.ToolReturned); ok {
			text = b.Text
			if b.IsError != (b.Call != "c1") {
				t.Errorf("%s: IsError is %v", b.Call, b.IsError)
			}
		}
		got = append(got, text)
	}
	const pending = "a jump is scheduled already; one step makes one jump or sends one D-Mail."
	want := []string{string("jump.requested"), "Scheduled.", "Not scheduled: " + pending, "Not scheduled: " + pending}
	if len(got) != len(want) {
		t.Fatalf("recorded %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("operation %d is %q, want %q", i, got[i], want[i])
		}
	}
}

// TestFirstAnswerCounts: of answers at the same time one is recorded; the others learn whose it was. One to a
// question that is over is refused.
func TestFirstAnswerCounts(t *testing.T) {
	l := openLedger(t)
	defer l.Journal.Close()
	if err := l.Record(t.Context(), &op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.QuestionAsked{About: op.AboutAnswer}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = l.Answer(t.Context(), &op.QuestionAnswered{Asked: 3, By: fmt.Sprint("user", i), From: "page"})
		})
	}
	wg.Wait()
	won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if won < 0 {
		t.Fatal(errs)
	}
	for i, err := range errs {
		if i != won &&
			(!errors.Is(err, taskdir.ErrAnswered) ||
				!strings.Contains(err.Error(), fmt.Sprintf("by user%d (page)", won))) {
			t.Errorf("answer %d: %v, while %d won", i, err, won)
		}
	}
	if qs := l.Questions(); len(qs) != 1 || qs[0].Answer == nil || qs[0].Answer.By != fmt.Sprint("user", won) {
		t.Errorf("recorded %+v", qs)
	}
	if err := l.Record(t.Context(), &op.TurnEnded{Reason: "done"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Answer(t.Context(), &op.QuestionAnswered{Asked: 3}); !errors.Is(err, taskdir.ErrNoQuestion) {
		t.Errorf("an answer after the end: %v", err)
	}
}
