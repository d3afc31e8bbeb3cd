package state

import (
	"reflect"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
)

// TestRepairsDue: a search is due after a command that failed and a later one that worked. A call that
// did not end, or that no command was, says nothing.
func TestRepairsDue(t *testing.T) {
	exit := func(n int) *op.ToolReturned { return &op.ToolReturned{Exit: &n} }
	bash := &CallState{Call: op.Call{Args: `{"command":"make"}`}}
	filtered := &CallState{Call: op.Call{Args: `{"command":"go test ./... | tail"}`}}
	failedBefore := func(text string) *op.ToolReturned {
		b := exit(0)
		b.Stdout = text
		return b
	}
	failedAfter := exit(1)
	failedAfter.Stdout = "done\n"
	refused, unknown := exit(1), exit(1)
	refused.Refused, unknown.Unknown = true, true
	wasRefused, wasUnknown := exit(0), exit(0)
	wasRefused.Refused, wasUnknown.Unknown = true, true
	for _, tt := range []struct {
		name string
		was  Repairs
		call *CallState
		b    *op.ToolReturned
		want Repairs
	}{
		{"failed", Repairs{}, bash, exit(2), Repairs{FailedAt: 9}},
		{"worked", Repairs{}, bash, exit(0), Repairs{}},
		{"failed again", Repairs{FailedAt: 4}, bash, exit(1), Repairs{FailedAt: 4}},
		{"worked then", Repairs{FailedAt: 4}, bash, exit(0), Repairs{FailedAt: 4, Worked: true}},
		{"failed later", Repairs{FailedAt: 4, Worked: true}, bash, exit(1), Repairs{FailedAt: 4, Worked: true}},
		{"no command", Repairs{FailedAt: 4}, bash, &op.ToolReturned{}, Repairs{FailedAt: 4}},
		{"refused", Repairs{}, bash, refused, Repairs{}},
		{"of unknown outcome", Repairs{}, bash, unknown, Repairs{}},
		{"refused then", Repairs{FailedAt: 4}, bash, wasRefused, Repairs{FailedAt: 4}},
		{"of unknown outcome then", Repairs{FailedAt: 4}, bash, wasUnknown, Repairs{FailedAt: 4}},
		{"failed before a filter", Repairs{}, filtered, failedBefore("--- FAIL: TestX (0.00s)\n    x_test.go:3: bad\nFAIL\tx\t0.1s\n"), Repairs{FailedAt: 9}},
		{"failed after a filter", Repairs{}, filtered, failedAfter, Repairs{FailedAt: 9}},
		{"worked before a filter", Repairs{FailedAt: 4}, filtered, failedBefore("done\n"), Repairs{FailedAt: 4, Worked: true}},
		{"quotes a failure", Repairs{FailedAt: 4}, bash, failedBefore("--- FAIL: TestX (0.00s)\n    x_test.go:3: bad\nFAIL\tx\t0.1s\n"), Repairs{FailedAt: 4, Worked: true}},
	} {
		got := tt.was
		got.recordResult(9, tt.call, tt.b)
		if got != tt.want || got.Due() != (got.FailedAt > 0 && tt.want.Worked) {
			t.Errorf("%s: %+v, due %v; want %+v", tt.name, got, got.Due(), tt.want)
		}
	}
	if (Repairs{Worked: true}).Due() {
		t.Error("due without a failure")
	}
}

// TestLearns: the pass at the end reads steps that were left, or pairs, once for each answer.
func TestLearns(t *testing.T) {
	tree := func(read bool) *State {
		s := new(State)
		for id, parent := range []int{0, 0, 0} {
			s.Steps.Add(steps.Step{
				ID: id, Parent: parent, First: uint64(10*id + 1), Last: uint64(10*id + 9), Ended: true,
				Read: id == 1 && read,
			})
		}
		s.Current = 2
		return s
	}
	for name, tt := range map[string]struct {
		read bool
		set  func(s *State)
		want bool
	}{
		"an unread step":       {want: true},
		"a read one":           {read: true},
		"pairs":                {read: true, set: func(s *State) { s.Turn.Pairs = op.Range{First: 1, Last: 1} }, want: true},
		"made for this answer": {set: func(s *State) { s.Turn.LeftRead = true }},
		"begun":                {read: true, set: func(s *State) { s.Turn.LeftRead, s.Learning = true, new(op.PassBegun) }, want: true},
		"not wanted":           {set: func(s *State) { s.Opened.NoFinalPass, s.Learning = true, new(op.PassBegun) }},
	} {
		s := tree(tt.read)
		if tt.set != nil {
			tt.set(s)
		}
		if got := s.learns(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := tree(false)
	s.Learning, s.Turn.Pairs, s.Turn.Learned = new(op.PassBegun), op.Range{First: 1, Last: 2}, []string{"before"}
	s.learned(
		projection.Pass{PassDone: &op.PassDone{Ranges: []op.Range{{First: 11, Last: 19}}, Cards: []string{"card"}}})
	if s.learns() || !s.Steps.At(1).Read || s.Steps.At(2).Read || strings.Join(s.Turn.Learned, " ") != "before card" {
		t.Errorf("after the pass: %+v, learned %v", s.Steps.List, s.Turn.Learned)
	}
}

// TestCarriedAndSettled: words are carried over out of what was compacted and out of what a jump left.
func TestCarriedAndSettled(t *testing.T) {
	s := new(State)
	for id, parent := range []int{0, 0, 0} { // 2 was reached by a jump back from 1
		s.Steps.Add(steps.Step{ID: id, Parent: parent})
	}
	s.Current, s.Pressure.Compacted = 2, 5
	for _, tt := range []struct {
		seq              uint64
		step             int
		compacted        bool
		carried, settled bool
	}{
		{seq: 5, step: 2, carried: true},
		{seq: 6, step: 2},
		{seq: 6, step: 1, settled: true},
		{seq: 6, step: 2, compacted: true, settled: true},
	} {
		s.Steps.Edit(2, func(st *steps.Step) { st.Compacted = tt.compacted })
		o := op.Op{Seq: tt.seq, Step: tt.step}
		if got := []bool{s.Carried(o), s.Settled(o)}; !reflect.DeepEqual(got, []bool{tt.carried, tt.settled}) {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	s.Steps.Edit(1, func(st *steps.Step) { st.Carried = true })
	if !s.Carried(op.Op{Seq: 6, Step: 1}) {
		t.Error("a D-Mail carried the words of step 1 over")
	}
}
