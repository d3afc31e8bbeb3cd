package orchestrator

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
)

// TestStateComesBack folds a random stream, writes the state down at some
// operation and goes on from what is read back: both states are the same in
// every field, then and at the end.
func TestStateComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{t: rt, s: new(State)}
		w.add(&op.TaskOpened{Task: "t", System: "system", EAS: 4000})
		w.add(&op.UserSaid{Text: "the first request", Source: op.SourceRequest})
		for range 40 {
			w.perform(Next(w.s, Limits{Steps: 1000}))
		}
		at := rapid.IntRange(1, len(w.ops)).Draw(rt, "written after op")
		direct := new(State)
		for _, o := range w.ops[:at] {
			if err := Fold(direct, o); err != nil {
				rt.Fatal(err)
			}
		}
		data, err := marshalState(direct)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := unmarshalState(data)
		if err != nil {
			rt.Fatal(err)
		}
		if !reflect.DeepEqual(back, direct) {
			rt.Fatalf("read back after op %d:\n%+v\nwant\n%+v", at, back, direct)
		}
		for _, o := range w.ops[at:] {
			if err := errors.Join(Fold(direct, o), Fold(back, o)); err != nil {
				rt.Fatal(err)
			}
		}
		if !reflect.DeepEqual(back, direct) {
			rt.Fatalf("gone on from op %d:\n%+v\nwant\n%+v", at, back, direct)
		}
	})
}

// TestStateCutShort reads every beginning of a written state: none is taken
// for a state.
func TestStateCutShort(t *testing.T) {
	data, err := marshalState(recordedStates(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := unmarshalState(data[:n]); !errors.Is(err, errFolded) {
			t.Fatalf("the first %d of %d bytes: %v, want errFolded", n, len(data), err)
		}
	}
	if _, err := unmarshalState(append(slices.Clone(data), 0)); !errors.Is(err, errFolded) {
		t.Fatalf("a byte more: %v, want errFolded", err)
	}
}

// TestFoldVersion holds what recorded operations fold to. Where it differs,
// checkpoints on people's disks say something else than Fold would: raise
// foldVersion, then -update.
func TestFoldVersion(t *testing.T) {
	sum := sha256.New()
	for _, s := range recordedStates(t) {
		data, err := marshalState(s)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(data)
	}
	got := foldVersion + " " + hex.EncodeToString(sum.Sum(nil)[:8]) + "\n"
	file := filepath.Join("testdata", "fold_version.txt")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if version, _, _ := strings.Cut(string(want), " "); string(want) != got && version == foldVersion {
			t.Fatalf("the fold changed: raise foldVersion %s first", foldVersion)
		}
		want = []byte(got)
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(want) != got {
		t.Errorf("operations fold to %swant %sraise foldVersion, then -update", got, want)
	}
}

// recordedStates are the states the projection goldens fold to.
func recordedStates(t *testing.T) []*State {
	t.Helper()
	files, err := filepath.Glob("testdata/projection/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	var out []*State
	for _, file := range files {
		ar, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, foldAll(t, parseOps(t, string(ar.Files[0].Data))))
	}
	return out
}

// TestOpenFromCheckpoint runs a task whose every step leaves a checkpoint.
// Opened again it folds only what came after, and holds what the whole stream
// says; so does a reader.
func TestOpenFromCheckpoint(t *testing.T) {
	task, h := newTask(t, doctorScript, Options{CheckpointEvery: 1})
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	whole := new(State)
	if err := EachOp(h, "t", func(o op.Op) error { return Fold(whole, o) }); err != nil {
		t.Fatal(err)
	}
	again, err := OpenTask(t.Context(), h, "t", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	// The seal that Close appends comes after the checkpoint.
	if again.checkpointed != whole.Last-1 {
		t.Errorf("the checkpoint holds %d of %d operations", again.checkpointed, whole.Last)
	}
	first := uint64(0)
	err = EachOpSince(h, "t", whole.Last/2, func(o op.Op) error {
		if first == 0 {
			first = o.Seq
		}
		return nil
	})
	if err != nil || first != whole.Last/2+1 {
		t.Errorf("the first operation since %d is %d (%v)", whole.Last/2, first, err)
	}
	read, err := ReadState(h, "t")
	if err != nil {
		t.Fatal(err)
	}
	want, err := marshalState(whole)
	if err != nil {
		t.Fatal(err)
	}
	if !holds(want, again.State()) || !holds(want, read) {
		t.Errorf("from its checkpoint the task is\n%+v, to a reader\n%+v, want\n%+v", again.State(), read, whole)
	}
}

// TestCheckpointOfUnusableState: what a failed fold left is not written down.
func TestCheckpointOfUnusableState(t *testing.T) {
	task, h := newTask(t, doctorScript, Options{CheckpointEvery: 1})
	// A result without a call cannot be folded; it is the stream that is wrong.
	if _, err := task.log.Append(t.Context(), opstream.Entry{Kind: string(op.KindToolReturned), Body: []byte(`{"call":"x"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := task.Run(t.Context()); !errors.Is(err, ErrStream) {
		t.Fatalf("Run: %v, want ErrStream", err)
	}
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(h.Task("t"), "checkpoint.bin")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a checkpoint: %v", err)
	}
}

// TestExamineCheckpoint: one that says something else than the operations is
// found out.
func TestExamineCheckpoint(t *testing.T) {
	task, h := newTask(t, doctorScript, Options{CheckpointEvery: 1})
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d, err := Examine(t.Context(), h, "t"); err != nil || len(d.Findings) > 0 {
		t.Fatalf("a whole task: %+v, %v", d, err)
	}
	task.state.Totals.Jumps++
	task.checkpointed = 0
	if err := task.Close(); err != nil {
		t.Fatal(err)
	}
	d, err := Examine(t.Context(), h, "t")
	if err != nil || !d.Has(opstream.SeverityCorrupt) || !strings.Contains(d.Findings[0].Why, "its checkpoint says something else") {
		t.Errorf("diagnosis %+v, %v", d, err)
	}
}

func FuzzUnmarshalState(f *testing.F) {
	s := new(State)
	for i, b := range []op.Body{&op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.WorldSaved{Commit: strings.Repeat("ab", 20)}} {
		if err := Fold(s, op.Op{Seq: uint64(i + 1), Body: b, Tok: 3}); err != nil {
			f.Fatal(err)
		}
	}
	data, err := marshalState(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Add([]byte("\x02{}\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := unmarshalState(data)
		if err != nil {
			return
		}
		again, err := marshalState(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unmarshalState(again); err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
	})
}

// TestBackwardJumpsKeepTheirPlace: the guard counts backward jumps and opens
// their operations for the reasons; a checkpoint keeps both.
func TestBackwardJumpsKeepTheirPlace(t *testing.T) {
	text := begun + `model.asked 1 {}
model.replied 1 {"text":"x","finish":"stop"}
world.saved 1 {"parent":0,"commit":"c"}
jump.intended 2 {"to":0,"backward":true,"by":"agent","reason":"first"}
jump.done 2 {"to":0}
model.asked 2 {}
model.replied 2 {"text":"x","finish":"stop"}
mail.delivered 2 {"to":0,"reason":"second"}
`
	ops := parseOps(t, text)
	s := foldAll(t, ops)
	data, err := marshalState(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := unmarshalState(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*State{"folded": s, "from a checkpoint": again} {
		var reasons []string
		for _, l := range s.loops {
			switch b := ops[l.seq-1].Body.(type) {
			case *op.JumpIntended:
				reasons = append(reasons, b.Reason)
			case *op.MailDelivered:
				reasons = append(reasons, b.Reason)
			}
		}
		if fmt.Sprint(reasons) != "[first second]" || s.backwardJumps(0) != 2 {
			t.Errorf("%s: reasons %q of %d jumps", name, reasons, s.backwardJumps(0))
		}
	}
}
