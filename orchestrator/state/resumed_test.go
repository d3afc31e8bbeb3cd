package state

import (
	"reflect"
	"testing"

	"anamnesis/opstream/op"
)

// TestResumed: a resume changes what its record names; another model has its own span and window, and another
// provider is not waited for.
func TestResumed(t *testing.T) {
	was := func() *State {
		s := &State{
			Opened: op.TaskOpened{Dir: "/a", Store: "s", WhenAsked: "wait"}, Limits: op.Limits{Steps: 3},
			Outage: new(Outage),
		}
		s.Model.Name, s.Model.BaseURL, s.Model.EAS, s.Model.Window, s.Model.Reflect = "m", "u", 8, 16, "r"
		s.Grants.Mode = "ask"
		s.Goal.Until = []string{"make"}
		return s
	}
	for name, tt := range map[string]struct {
		b      op.TaskResumed
		change func(s *State)
	}{
		"nothing":          {op.TaskResumed{}, func(*State) {}},
		"the same model":   {op.TaskResumed{Model: "m", BaseURL: "u"}, func(*State) {}},
		"another model":    {op.TaskResumed{Model: "n", BaseURL: "u", EAS: 1}, func(s *State) { s.Outage, s.Model.Name, s.Model.EAS, s.Model.Window = nil, "n", 1, 0 }},
		"another provider": {op.TaskResumed{Model: "m", BaseURL: "v"}, func(s *State) { s.Outage, s.Model.BaseURL = nil, "v" }},
		"another advisor":  {op.TaskResumed{Reflect: "q"}, func(s *State) { s.Model.Reflect = "q" }},
		"another mode":     {op.TaskResumed{Approval: "auto", WhenAsked: "stop"}, func(s *State) { s.Grants.Mode, s.Opened.WhenAsked = "auto", "stop" }},
		"limits":           {op.TaskResumed{Limits: &op.Limits{USD: 2}}, func(s *State) { s.Limits = op.Limits{USD: 2} }},
		"a goal":           {op.TaskResumed{Goal: &op.Goal{Score: "n"}}, func(s *State) { s.Goal = Goal{Goal: op.Goal{Score: "n"}} }},
		"the same folder":  {op.TaskResumed{Dir: "/a", Store: "t"}, func(s *State) { s.Opened.Store = "t" }},
		"another folder":   {op.TaskResumed{Dir: "/b", Store: "t"}, func(s *State) { s.Moved, s.Opened.Dir, s.Opened.Store = []string{"/a"}, "/b", "t" }},
		"going on":         {op.TaskResumed{Continue: true}, func(s *State) { s.Turn.Open = true }},
	} {
		got, want := was(), was()
		got.resumed(&tt.b)
		tt.change(want)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	s := was()
	s.Turn = Turn{Open: true, Steps: 4}
	if s.resumed(&op.TaskResumed{Continue: true}); s.Turn.Steps != 4 {
		t.Errorf("a turn that is open begins again: %+v", s.Turn)
	}
	s.Turn = Turn{Steps: 4, AskedAt: 9}
	if s.resumed(&op.TaskResumed{Continue: true}); s.Turn.Steps != 0 || s.Turn.AskedAt != 9 || !s.Turn.Open {
		t.Errorf("the turn that goes on: %+v", s.Turn)
	}
}
