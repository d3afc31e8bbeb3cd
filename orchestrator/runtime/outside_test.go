package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/workspace"
)

// TestOutside: what another agent's hooks report becomes steps and turns. A call that is reported twice, or at its
// end only, counts once; what has no result has an unknown outcome.
func TestOutside(t *testing.T) {
	task, _ := newTask(t, "turns:\n  - reply: Unused.\n", Options{})
	out := Outside{task}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	call := func(id string, writes bool) OutsideCall {
		return OutsideCall{Call: op.Call{ID: id, Name: "Any", Args: "{}"}, Writes: writes}
	}
	open := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range out.Open() {
			got = append(got, c.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("open %q, want %q", got, want)
		}
	}
	ok(out.Advance(t.Context()))
	open()
	ok(out.Begin(t.Context(), call("a", false)))
	if out.Writing() {
		t.Error("a call that reads writes")
	}
	ok(out.Begin(t.Context(), call("b", true)))
	ok(out.Begin(t.Context(), call("b", true)))
	open("a", "b")
	if !out.Writing() {
		t.Error("a call that writes does not")
	}
	if _, err := out.Checkpoint(t.Context(), "now"); !errors.Is(err, ErrCallOpen) {
		t.Errorf("a checkpoint beside a call: %v", err)
	}
	ok(out.Returned(t.Context(), call("a", false), &op.ToolReturned{Call: "a", Name: "Any", Text: "done"}))
	open("b")
	if got := task.Ledger.State().Current; got != 0 {
		t.Errorf("step %d ended while a call was open", got)
	}
	ok(out.Returned(t.Context(), call("c", false), &op.ToolReturned{Call: "c", Name: "Any", Text: "done"}))
	open("b")
	ok(out.Returned(t.Context(), call("b", true), &op.ToolReturned{Call: "b", Name: "Any", Text: "done"}))
	open()
	if got := task.Ledger.State().Current; got != 1 {
		t.Errorf("step %d, want 1", got)
	}
	for id, want := range map[string]bool{"a": true, "c": true, "none": false} {
		if got, err := out.Recorded(id); got != want || err != nil {
			t.Errorf("a result of %s: %v, %v", id, got, err)
		}
	}
	if step, err := out.Checkpoint(t.Context(), "now"); step != 2 || err != nil {
		t.Errorf("checkpoint %d, %v", step, err)
	}

	ok(out.Begin(t.Context(), call("d", true)))
	ok(out.Answered(t.Context(), "All done."))
	st := task.Ledger.State()
	if st.Turn.Open || st.Said.Answer != "All done." || st.Turn.End == nil || st.Turn.End.Reason != "done" {
		t.Errorf("after the answer: %+v, answer %q", st.Turn, st.Said.Answer)
	}
	unknown := 0
	ops, err := task.Ledger.Ops(op.Range{First: 1, Last: st.Last})
	ok(err)
	for _, o := range ops {
		if b, is := o.Body.(*op.ToolReturned); is && b.Unknown {
			unknown++
			if b.Call != "d" || b.Text != NotReported {
				t.Errorf("of unknown outcome: %+v", b)
			}
		}
	}
	if unknown != 1 {
		t.Errorf("%d calls have an unknown outcome", unknown)
	}
	last := st.Last
	ok(out.Answered(t.Context(), "Again."))
	if task.Ledger.State().Last != last || task.Ledger.State().Said.Answer != "All done." {
		t.Error("an answer outside a turn is recorded")
	}

	ok(out.Begin(t.Context(), call("e", false)))
	if !task.Ledger.State().Turn.Open {
		t.Error("a call after the end of a turn does not open it again")
	}
	ok(out.Returned(t.Context(), call("e", false), &op.ToolReturned{Call: "e", Name: "Any"}))
	ok(out.Answered(t.Context(), ""))
	if got := task.Ledger.State().Said.Answer; got != "(no answer was reported)" {
		t.Errorf("answer %q", got)
	}
}

// TestOutsideNews: the agent learns what changed since an operation, and the words that it has not acted on.
func TestOutsideNews(t *testing.T) {
	task, _ := newTask(t, "turns:\n  - reply: Unused.\n", Options{})
	out := Outside{task}
	if err := out.Said(t.Context(), "More."); err != nil {
		t.Fatal(err)
	}
	if said, err := out.LastSaid(); said != "More." || err != nil {
		t.Errorf("said %q, %v", said, err)
	}
	last := task.Ledger.State().Last
	if err := os.WriteFile(filepath.Join(task.Place.Dir, "f"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := out.RecordUserChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := task.Ledger.ApplyQueued(); err != nil {
		t.Fatal(err)
	}
	if news, err := out.News(last); !strings.Contains(news, "f") || err != nil {
		t.Errorf("news %q, %v", news, err)
	}
	if news, err := out.News(task.Ledger.State().Last); news != "" || err != nil {
		t.Errorf("news since the last operation: %q, %v", news, err)
	}
	call := OutsideCall{Call: op.Call{ID: "a", Name: "Any", Args: "{}"}, Writes: true}
	if err := out.Begin(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if said, err := out.LastSaid(); said != "" || err != nil {
		t.Errorf("said after a call: %q, %v", said, err)
	}
	if err := os.WriteFile(filepath.Join(task.Place.Dir, "g"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	last = task.Ledger.State().Last
	if err := out.RecordUserChanges(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := task.Ledger.ApplyQueued(); err != nil || task.Ledger.State().Last != last {
		t.Errorf("changes beside a call are recorded: %v", err)
	}
}

// TestOpenGone: a task whose directory is missing is opened only where it may be made again.
func TestOpenGone(t *testing.T) {
	task, h := newTask(t, "turns:\n  - reply: Done.\n", Options{})
	dir := task.Place.Dir
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		gone, recreate bool
		err            error
	}{{false, false, nil}, {false, true, nil}, {true, false, workspace.ErrNoDirectory}, {true, true, nil}} {
		if tt.gone {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}
		o := *task.opts
		o.Recreate, o.family = tt.recreate, nil
		again, err := OpenTask(t.Context(), h, "t", o)
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("gone %v, recreate %v: %v", tt.gone, tt.recreate, err)
		}
		_, absent := os.Stat(dir)
		if (absent != nil) != (tt.gone && !tt.recreate) {
			t.Errorf("gone %v, recreate %v: %v", tt.gone, tt.recreate, absent)
		}
		if err == nil {
			if err := again.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
