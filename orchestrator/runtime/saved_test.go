package runtime

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

const savedScript = `turns:
  - calls:
      - {name: WriteFile, arguments: {path: a, content: one}}
  - calls:
      - {name: ReadFile, arguments: {path: a}}
  - calls:
      - {name: WriteFile, arguments: {path: a, content: two}}
  - calls:
      - {name: jump_to_step, arguments: {step_id: 1, reason: "two was wrong"}}
  - calls:
      - {name: WriteFile, arguments: {path: a, content: three}}
  - reply: Done.
`

// TestSavedWorlds: what a task and a reader say that each step ended with is what
// the stream says, by a snapshot of the index or without.
func TestSavedWorlds(t *testing.T) {
	task, h := newTask(t, savedScript, Options{Store: Store{SnapshotEvery: 1}})
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[int]*op.WorldSaved{}
	if err := taskdir.EachOp(h, "t", func(o op.Op) error {
		if b, ok := o.Body.(*op.WorldSaved); ok {
			want[o.Step] = b
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	check := func(task *Task) {
		t.Helper()
		commits, _, err := workspace.Commits(task.Ledger.Journal.Log(), task.Ledger.State(), nil)
		if err != nil || len(commits) != task.Ledger.State().Steps.Len() || len(want) < 6 {
			t.Fatalf("%d commits, %v; %d steps ended", len(commits), err, len(want))
		}
		for id, b := range want {
			w, err := task.Place.WorldOf(id)
			if err != nil || string(w.Commit) != b.Commit || w.Tree != b.Tree || w.Commit != commits[id] {
				t.Errorf("step %d ended with %+v, %s, %v, want %s, %s", id, w, commits[id], err, b.Commit, b.Tree)
			}
			if at, err := task.Place.CommitAt(id); err != nil || string(at) != b.Commit {
				t.Errorf("the commit at step %d is %s, %v, want %s", id, at, err, b.Commit)
			}
			// Of steps with the same commit the last is told, or the one that is named.
			if at := task.Place.StepAt(w.Commit, ""); at < id || want[at].Commit != b.Commit {
				t.Errorf("commit %s is of step %d, want %d or a later one", w.Commit, at, id)
			}
		}
		if at := task.Place.StepAt("no such commit", "1"); at != -1 {
			t.Errorf("an unknown commit is of step %d", at)
		}
	}
	check(task)
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenTask(t.Context(), h, "t", Options{Tools: task.opts.Tools, Model: task.opts.Model})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if _, _, ok := again.Ledger.Journal.Log().Folded(); !ok {
		t.Fatal("no snapshot of the index was used")
	}
	check(again)
	// Where a step saved no world, that of the step before it still stands.
	last := again.Ledger.State().Current
	next := again.Ledger.State().Steps.Next()
	if err := again.Ledger.Record(t.Context(), &op.WorldSaved{Parent: last, Error: "disk full"}); err != nil {
		t.Fatal(err)
	}
	if at, err := again.Place.CommitAt(next); err != nil || string(at) != want[last].Commit {
		t.Errorf("the commit at a step without a checkpoint is %q, %v, want %s, of step %d", at, err,
			want[last].Commit, last)
	}
}

// TestSavedWorldDamaged: the line that names a step's world is found to be
// damaged when it is needed, and those of others are read.
func TestSavedWorldDamaged(t *testing.T) {
	task, h := newTask(t, savedScript, Options{Store: Store{SnapshotEvery: 1}})
	_, err := task.Run(t.Context())
	if err = errors.Join(err, task.Close()); err != nil {
		t.Fatal(err)
	}
	st, r, err := taskdir.OpenState(h, "t")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	whole, _, err := workspace.Commits(r, st, nil)
	if err != nil {
		t.Fatal(err)
	}
	other := new(state.State) // of the same stream, in which step 3 ended with another tree
	err = taskdir.EachOp(h, "t", func(o op.Op) error {
		if b, ok := o.Body.(*op.WorldSaved); ok && o.Step == 3 {
			b.Tree = "another"
		}
		return state.Fold(other, o)
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(h.Task("t"), "ops", "0000000000000001.jsonl")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	line := lines[st.Steps.At(3).Last-1]
	line[bytes.Index(line, []byte(whole[3]))] ^= 1
	if err := os.WriteFile(file, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, err := workspace.Commits(r, st, nil)
	if !errors.Is(err, opstream.ErrCorrupt) {
		t.Errorf("the damage is told as %v", err)
	}
	for id := range whole {
		if id == 3 && got[id] != "" || id != 3 && got[id] != whole[id] {
			t.Errorf("step %d ended with %q, want %q", id, got[id], whole[id])
		}
	}
	// The step's snapshot says the same, unless it is another tree's.
	w, err := worldstate.Open(st.Opened.Dir, st.Opened.Store, &worldstate.Options{Task: "t"})
	if err != nil {
		t.Fatal(err)
	}
	got, overcome, err := workspace.Commits(r, st, w)
	if err != nil || !slices.Equal(got, whole) || !strings.Contains(overcome, "the world of step 3") {
		t.Errorf("with the store: %v, %q, %v; want %v", got, overcome, err, whole)
	}
	if got, overcome, err := workspace.Commits(r, other, w, 3); !errors.Is(err, opstream.ErrCorrupt) || got[0] != "" ||
		overcome != "" {
		t.Errorf("another tree's ref: %v, %q, %v", got, overcome, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	// A user has back the files that the store holds all the same.
	for _, name := range []string{"3", string(whole[1])} {
		again, err := OpenTask(t.Context(), h, "t", Options{Tools: task.opts.Tools, Model: task.opts.Model})
		if err != nil {
			t.Fatal(err)
		}
		res, err := again.RestoreWorld(t.Context(), name, worldstate.RestoreOptions{}, &op.TaskResumed{})
		if err = errors.Join(err, again.Close()); err != nil || len(res.Written) != 1 {
			t.Errorf("restore %s: %+v, %v", name, res, err)
		}
	}
}
