package journal_test

import (
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/taskdir"
)

// TestPostResultSchedulesOneJump: the jump that a call requests is recorded before its result; a
// second one in the same step, folded or not, is dropped, and its result is an error.
func TestPostResultSchedulesOneJump(t *testing.T) {
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
	defer l.Journal.Close()
	calls := []op.Call{{ID: "c1", Name: "jump_to_step", Args: "{}"}, {ID: "c2", Name: "send_dmail", Args: "{}"}, {ID: "c3", Name: "jump_to_step", Args: "{}"}}
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
	want := []string{string(op.KindJumpRequested), "Scheduled.", "Not scheduled: " + pending, "Not scheduled: " + pending}
	if len(got) != len(want) {
		t.Fatalf("recorded %q, want %q", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("operation %d is %q, want %q", i, got[i], want[i])
		}
	}
}
