package mail

import (
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
)

// TestCheckMail: a D-Mail goes to a checkpoint that exists, says something, and restores only files that were saved.
func TestCheckMail(t *testing.T) {
	end := func(step int, commit string) *op.WorldSaved {
		return &op.WorldSaved{Parent: step - 1, Commit: commit, Tree: commit, Error: strings.Repeat("disk full", 1-min(1, len(commit)))}
	}
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t", EAS: 8000},
		&op.CheckpointMarked{Checkpoint: 0}, end(1, "c1"), &op.CheckpointMarked{Checkpoint: 1}, end(2, ""), &op.CheckpointMarked{Checkpoint: 2})
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
		{mail: op.Mail{Numbered: true, Checkpoint: 2, Message: "m"}, err: "checkpoint 2 is the end of the step under way"},
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
	if _, err := none.CheckMail(op.Mail{Numbered: true, Message: "m"}); err == nil || !strings.Contains(err.Error(), "none was created in an earlier step") {
		t.Errorf("without checkpoints: %v", err)
	}
}

// TestMarkCheckpoint: checkpoints are numbered in order, those that are not folded yet included.
func TestMarkCheckpoint(t *testing.T) {
	p := gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "t", Tools: []string{"Bash", sendName}}, &op.CheckpointMarked{Checkpoint: 0})
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
	}{{op.Mail{Checkpoint: 1}, 1, "2-4"}, {op.Mail{Checkpoint: 0, Numbered: true}, 1, "1-2"}, {op.Mail{Checkpoint: 2, Numbered: true}, 4, ""}} {
		if got := laterCheckpoints(st, op.JumpRequested{To: tt.to, Mail: &tt.mail}); got != tt.want {
			t.Errorf("%+v: later %q, want %q", tt.mail, got, tt.want)
		}
	}
}
