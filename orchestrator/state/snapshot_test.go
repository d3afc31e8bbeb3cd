package state

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

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/optest"
)

// TestStateComesBack folds a random stream, writes the state down at some
// operation and continues from what is read back: both states are the same in
// every field, then and at the end.
func TestStateComesBack(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &walk{t: rt, s: new(State)}
		w.add(&op.TaskOpened{Task: "t", System: "system", EAS: 4000})
		w.add(&op.UserSaid{Text: "the first request", Source: op.SourceRequest})
		for range 40 {
			w.perform(Next(w.s, Limits{Limits: op.Limits{Steps: 1000}}))
		}
		at := rapid.IntRange(1, len(w.ops)).Draw(rt, "written after op")
		direct := new(State)
		for _, o := range w.ops[:at] {
			if err := Fold(direct, o); err != nil {
				rt.Fatal(err)
			}
		}
		data, err := Marshal(direct)
		if err != nil {
			rt.Fatal(err)
		}
		back, err := Unmarshal(data)
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
	data, err := Marshal(recordedStates(t)[0])
	if err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := Unmarshal(data[:n]); !errors.Is(err, ErrSnapshot) {
			t.Fatalf("the first %d of %d bytes: %v, want errFolded", n, len(data), err)
		}
	}
	if _, err := Unmarshal(append(slices.Clone(data), 0)); !errors.Is(err, ErrSnapshot) {
		t.Fatalf("a byte more: %v, want errFolded", err)
	}
}

// TestFoldVersion holds what recorded operations fold to. Where it differs,
// snapshots on users' disks say something else than Fold would: raise
// FoldVersion, then -update.
func TestFoldVersion(t *testing.T) {
	sum := sha256.New()
	for _, s := range recordedStates(t) {
		data, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		sum.Write(data)
	}
	got := FoldVersion + " " + hex.EncodeToString(sum.Sum(nil)[:8]) + "\n"
	file := filepath.Join("testdata", "fold_version.txt")
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if *optest.Update {
		if version, _, _ := strings.Cut(string(want), " "); string(want) != got && version == FoldVersion {
			t.Fatalf("the fold changed: raise FoldVersion %s first", FoldVersion)
		}
		want = []byte(got)
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(want) != got {
		t.Errorf(
			"operations fold to %swant %sraise FoldVersion unless you have, then run this test with -update", got, want)
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
		out = append(out, optest.Fold(t, Fold, optest.Parse(t, string(ar.Files[0].Data))))
	}
	return out
}

func FuzzUnmarshalState(f *testing.F) {
	s := new(State)
	for i, b := range []op.Body{&op.TaskOpened{Task: "t"}, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.WorldSaved{Commit: strings.Repeat("ab", 20)}} {
		if err := Fold(s, op.Op{Seq: uint64(i + 1), Body: b, Tok: 3}); err != nil {
			f.Fatal(err)
		}
	}
	data, err := Marshal(s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte{})
	f.Add([]byte("\x02{}\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Unmarshal(data)
		if err != nil {
			return
		}
		again, err := Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Unmarshal(again); err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
	})
}

// TestBackwardJumpsKeepTheirPlace: the guard counts backward jumps and opens
// their operations for the reasons; a snapshot keeps both.
func TestBackwardJumpsKeepTheirPlace(t *testing.T) {
	text := optest.Begun + `model.asked 1 {}
model.replied 1 {"text":"x","finish":"stop"}
world.saved 1 {"parent":0,"commit":"c"}
jump.intended 2 {"to":0,"backward":true,"by":"agent","reason":"first"}
jump.done 2 {"to":0}
model.asked 2 {}
model.replied 2 {"text":"x","finish":"stop"}
mail.delivered 2 {"to":0,"reason":"second"}
`
	ops := optest.Parse(t, text)
	s := optest.Fold(t, Fold, ops)
	data, err := Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Unmarshal(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*State{"folded": s, "from a snapshot": again} {
		var reasons []string
		for _, l := range s.Jump.Ticks {
			switch b := ops[l.Seq-1].Body.(type) {
			case *op.JumpIntended:
				reasons = append(reasons, b.Reason)
			case *op.MailDelivered:
				reasons = append(reasons, b.Reason)
			}
		}
		if fmt.Sprint(reasons) != "[first second]" || len(s.Jump.Backward(0)) != 2 {
			t.Errorf("%s: reasons %q of %d jumps", name, reasons, len(s.Jump.Backward(0)))
		}
	}
}
