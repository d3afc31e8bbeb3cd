package mail

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
	"anamnesis/orchestrator/workspace"
)

// TestCheckMail: a D-Mail goes to a checkpoint that exists, says something, and restores only files that were saved.
func TestCheckMail(t *testing.T) {
	end := func(step int, commit string) *op.WorldSaved {
		return &op.WorldSaved{Parent: step - 1, Commit: commit, Tree: commit,
			Error: strings.Repeat("disk full", 1-min(1, len(commit)))}
	}
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t", EAS: 8000},
		&op.CheckpointMarked{Checkpoint: 0}, end(1, "c1"), &op.CheckpointMarked{Checkpoint: 1}, end(2,
			""), &op.CheckpointMarked{Checkpoint: 2})
	s := New(p, nil)
	long := strings.Repeat("word ", 8000)
	for _, tt := range []struct {
		mail op.Mail
		to   int
		err  string
	}{
		{mail: op.Mail{Checkpoint: 1, Message: "m", RestoreFiles: true}, to: 1},
		{mail: op.Mail{Checkpoint: 2, Message: "m"}, to: 2},
		{mail: op.Mail{Checkpoint: 2, Message: "m", RestoreFiles: true}, err: "the files of step 2 were not saved (disk full)"},
		{mail: op.Mail{Checkpoint: 3, Message: "m"}, err: "step 3"},
		{mail: op.Mail{Checkpoint: -1, Message: "m"}, err: "step -1"},
		{mail: op.Mail{Checkpoint: 1, Message: " \n"}, err: "the message is empty"},
		{mail: op.Mail{Checkpoint: 1, Message: long}, err: "tokens and may have"},
		{mail: op.Mail{Numbered: true, Checkpoint: 0, Message: "m", RestoreFiles: true}, to: 1},
		{mail: op.Mail{Numbered: true, Checkpoint: 1, Message: "m"}, to: 2},
		{mail: op.Mail{Numbered: true, Checkpoint: 2, Message: "m"}, err: "checkpoint 2 is the end of this step"},
		{mail: op.Mail{Numbered: true, Checkpoint: 3, Message: "m"}, err: "there is no checkpoint 3; those created are 0-1"},
		{mail: op.Mail{Numbered: true, Checkpoint: -1, Message: "m"}, err: "there is no checkpoint -1; those created are 0-1"},
	} {
		j, err := s.CheckMail(tt.mail)
		switch {
		case tt.err != "":
			if j != nil || err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%.60v: %v, want %q", tt.mail, err, tt.err)
			}
		case err != nil || j.To != tt.to || j.Reason != "D-Mail: m" || *j.Mail != tt.mail:
			t.Errorf("%+v: %+v, %v; want step %d", tt.mail, j, err, tt.to)
		}
	}

	none := New(gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t"}), nil)
	if _, err := none.CheckMail(op.Mail{Numbered: true, Message: "m"}); err == nil ||
		!strings.Contains(err.Error(), "none was created in an earlier step") {
		t.Errorf("without checkpoints: %v", err)
	}
}

// TestMarkCheckpoint: checkpoints are numbered in order, those that are not folded yet included.
func TestMarkCheckpoint(t *testing.T) {
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t", Tools: []string{"Bash", sendName}},
		&op.CheckpointMarked{Checkpoint: 0})
	s := New(p, nil)
	for want := 1; want < 4; want++ {
		if got, err := s.MarkCheckpoint(t.Context(), "c1"); got != want || err != nil {
			t.Errorf("checkpoint %d, %v; want %d", got, err, want)
		}
		if want == 2 {
			if err := p.ApplyQueued(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := s.StepMark(7); got != " CHECKPOINT 7" {
		t.Errorf("mark %q", got)
	}
	p.State().Opened.Tools = []string{"Bash", markName}
	if got := s.StepMark(7); got != "" {
		t.Errorf("mark %q of a task without the tool", got)
	}
	p.State().Marked = make([]state.Marked, maxMarked-1)
	if err := p.ApplyQueued(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.MarkCheckpoint(t.Context(), "c1"); err == nil {
		t.Errorf("checkpoint %d beyond the limit", n)
	}
}

// TestWhatMailNames: a message names the checkpoints that stay behind it, and the steps before it that the
// files do not hold.
func TestWhatMailNames(t *testing.T) {
	st := new(state.State)
	for id, parent := range []int{0, 0, 1, 2, 1, 4} { // a jump back from 3 to 1
		st.Steps.Add(steps.Step{ID: id, Parent: parent, Ended: id < 5})
	}
	st.Current = 4
	st.Marked = []state.Marked{{Step: 1}, {Step: 2}, {Step: 4}, {Step: 5}}
	for above, want := range map[int][]int{-1: {0, 1, 2}, 0: {1, 2}, 2: nil} {
		if got := validMarks(st, above); !slices.Equal(got, want) {
			t.Errorf("valid above %d: %v, want %v", above, got, want)
		}
	}
	for id, want := range map[int]string{1: "", 4: "", 3: "2-3", 2: "2"} {
		if got := leftBefore(st, id); got != want {
			t.Errorf("left before %d: %q, want %q", id, got, want)
		}
	}
	for _, tt := range []struct {
		mail op.Mail
		to   int
		want string
	}{
		{op.Mail{Checkpoint: 1}, 1, "2-4"}, {op.Mail{Checkpoint: 0, Numbered: true}, 1, "1-2"},
		{op.Mail{Checkpoint: 2, Numbered: true}, 4, ""},
	} {
		if got := laterCheckpoints(st, op.JumpRequested{To: tt.to, Mail: &tt.mail}); got != tt.want {
			t.Errorf("%+v: later %q, want %q", tt.mail, got, tt.want)
		}
	}
}

// TestPass: the block of a D-Mail replaces the steps after its checkpoint, those alone, and is written once.
func TestPass(t *testing.T) {
	for to, want := range map[int][]string{1: {"mind 2", "mind 3"}, 2: {"mind 3"}} {
		for _, restore := range []bool{false, true} {
			p := threeSteps(t)
			last := p.State().Last
			j := &state.Pending{JumpRequested: op.JumpRequested{To: to,
				Mail: &op.Mail{Checkpoint: to, Message: "It was the cache.", RestoreFiles: restore}}}
			s := New(p, func([]op.Op) []string { return []string{"t.1 pushed"} })
			if err := s.Pass(t.Context(), j); err != nil {
				t.Fatal(err)
			}
			o, err := p.Op(last + 1)
			if err != nil {
				t.Fatal(err)
			}
			b := o.Body.(*op.PassDone)
			if first, end := p.State().Steps.At(to+1).First, p.State().Steps.At(3).Last; len(b.Ranges) != 1 ||
				b.Ranges[0] != (op.Range{First: first, Last: end}) {
				t.Errorf("to %d: it replaces %v, want %d to %d", to, b.Ranges, first, end)
			}
			for i := 1; i <= 3; i++ {
				word := fmt.Sprint("mind ", i)
				if got := strings.Contains(b.Words, word); got != (!restore && slices.Contains(want, word)) {
					t.Errorf("to %d, files restored %v: %q is carried over: %v", to, restore, word, got)
				}
			}
			if !strings.Contains(b.Block, "It was the cache.") || strings.Contains(b.Block, "t.1 pushed") == restore {
				t.Errorf("to %d: block\n%s", to, b.Block)
			}
			j.Passes = make([]projection.Pass, 1)
			if last = p.State().Last; s.Pass(t.Context(), j) != nil || p.State().Last != last {
				t.Error("a pass that an earlier process recorded is written again")
			}
		}
	}
}

// threeSteps returns the place of a task that took three steps and was told something in each.
func threeSteps(t *testing.T) *workspace.Place {
	t.Helper()
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t", EAS: 8000})
	for i := range 3 { // one by one: each is of the step that it is recorded in
		for _, b := range []op.Body{&op.ModelReplied{Text: fmt.Sprint("step ", i+1)}, &op.UserSaid{Text: fmt.Sprint("mind ", i+1), Source: op.SourceSteer}, &op.WorldSaved{Parent: i, Commit: "c"}, &op.ModelAsked{}} {
			if err := p.Record(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	return p
}
