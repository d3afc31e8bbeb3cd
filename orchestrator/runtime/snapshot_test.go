package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// TestOpenFromSnapshot runs a task whose every step leaves a snapshot.
// Opened again it folds only what came after, and holds what the whole stream
// says; so does a reader.
func TestOpenFromSnapshot(t *testing.T) {
	task, h := newTask(t, doctorScript, Options{Store: Store{SnapshotEvery: 1}})
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	whole := new(state.State)
	if err := taskdir.EachOp(h, "t", func(o op.Op) error { return state.Fold(whole, o) }); err != nil {
		t.Fatal(err)
	}
	again, err := OpenTask(t.Context(), h, "t", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	// The seal that Close appends comes after the snapshot.
	if _, seq, _ := again.Ledger.Journal.Log().Folded(); seq != whole.Last-1 {
		t.Errorf("the snapshot holds %d of %d operations", seq, whole.Last)
	}
	first := uint64(0)
	err = taskdir.EachOpSince(h, "t", whole.Last/2, func(o op.Op) error {
		if first == 0 {
			first = o.Seq
		}
		return nil
	})
	if err != nil || first != whole.Last/2+1 {
		t.Errorf("the first operation since %d is %d (%v)", whole.Last/2, first, err)
	}
	read, err := taskdir.ReadState(h, "t")
	if err != nil {
		t.Fatal(err)
	}
	want, err := state.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if !state.Holds(want, again.Ledger.State()) || !state.Holds(want, read) {
		t.Errorf("from its snapshot the task is\n%+v, to a reader\n%+v, want\n%+v", again.Ledger.State(), read, whole)
	}
}

// TestSnapshotOfUnusableState: what a failed fold left is not written down.
func TestSnapshotOfUnusableState(t *testing.T) {
	task, h := newTask(t, doctorScript, Options{Store: Store{SnapshotEvery: 1}})
	// A result without a call cannot be folded; it is the stream that is wrong.
	if _, err := task.Ledger.Journal.Log().Append(t.Context(), opstream.Entry{Kind: string(op.KindToolReturned), Body: []byte(`{"call":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := task.Run(t.Context()); !errors.Is(err, state.ErrStream) {
		t.Fatalf("Run: %v, want ErrStream", err)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.Task("t"), "checkpoint.bin")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a snapshot: %v", err)
	}
}

// TestExamineSnapshot: one that differs from the operations is
// found out.
func TestExamineSnapshot(t *testing.T) {
	task, h := newTask(t, doctorScript, Options{Store: Store{SnapshotEvery: 1}})
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := inspect.Examine(t.Context(), h, "t"); err != nil || len(d.Findings) > 0 {
		t.Fatalf("a whole task: %+v, %v", d, err)
	}
	task.Ledger.State().Totals.Jumps++
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := inspect.Examine(t.Context(), h, "t")
	if err != nil || !d.Has(opstream.SeverityCorrupt) ||
		!strings.Contains(d.Findings[0].Why, "its snapshot of the index differs from") {
		t.Errorf("diagnosis %+v, %v", d, err)
	}
}
