package state

import (
	"fmt"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/research"
	"anamnesis/orchestrator/state/steps"
)

// TestJobs: a background command runs until its end is recorded, and no number is given twice.
func TestJobs(t *testing.T) {
	var j Jobs
	start := func(id string) { j.fold(op.Op{Step: 3, Body: &op.JobStarted{Job: id}}) }
	for _, id := range []string{"bg_1", "bg_4", "odd", "bg_-9"} {
		start(id)
	}
	if len(j.Running) != 4 || j.Begun != 6 || j.Running[1].Step != 3 {
		t.Fatalf("%+v", j)
	}
	j.fold(op.Op{Body: &op.JobEnded{Job: "bg_1"}})
	if len(j.Running) != 3 || j.Running[0].Job != "bg_4" {
		t.Errorf("after one ended: %+v", j)
	}
	for _, id := range []string{"bg_4", "odd", "bg_-9"} {
		j.fold(op.Op{Body: &op.JobEnded{Job: id}})
	}
	if j.Running != nil || j.Begun != 6 {
		t.Errorf("after all ended: %+v", j)
	}
	for id, want := range map[string]int{"bg_7": 7, "bg_0": 0, "bg_x": 0, "bg_-2": 0, "": 0} {
		if got := JobNumber(id); got != want {
			t.Errorf("JobNumber(%q) = %d", id, got)
		}
	}
}

// TestSubagents: a subagent may be given further work, and has the directory of its first.
func TestSubagents(t *testing.T) {
	var l Subagents
	l.fold(op.Op{Step: 2, Body: &op.SubagentStarted{Task: "a", Dir: "own", Description: "one"}})
	if l.InWorld() {
		t.Error("a subagent with a directory of its own works in the task's")
	}
	l.fold(op.Op{Step: 3, Body: &op.SubagentStarted{Task: "b", Description: "two", Call: "c1"}})
	if !l.InWorld() {
		t.Error("no subagent works in the task's directory")
	}
	l.fold(op.Op{Body: &op.SubagentEnded{Task: "b", Reason: "done"}})
	if l.InWorld() || l[1].Reason != "done" || !l[0].Running || l[0].Reason != "" {
		t.Errorf("after b ended: %+v", l)
	}
	l.fold(op.Op{Step: 5, Body: &op.SubagentStarted{Task: "b", Description: "three", Call: "c2"}})
	if b := l[1]; len(l) != 2 || b.Step != 3 || b.Description != "three" || b.Call != "c2" || !b.Running ||
		b.Reason != "" {
		t.Errorf("after further work: %+v", l)
	}
	if in := l.BegunIn([]int{3, 5}); len(in) != 1 || in[0].Task != "b" || len(l) != 2 {
		t.Errorf("begun in step 3: %+v", in)
	}
}

// TestResearchRecords: a subject of a refused call is wanted until it is looked up, under whichever of its names.
func TestResearchRecords(t *testing.T) {
	var r Research
	fold := func(seq uint64, b op.Body) { r.Fold(op.Op{Seq: seq, Body: b}) }
	fold(1, &op.ApprovalDecided{By: "user", Decision: "refuse", Subjects: []string{"npm:a"}})
	fold(2, &op.ApprovalDecided{By: ByResearchGuard, Decision: "allow", Subjects: []string{"npm:a"}})
	if r.Wanted != nil {
		t.Errorf("wanted: %v", r.Wanted)
	}
	fold(3,
		&op.ApprovalDecided{By: ByResearchGuard, Decision: "refuse", Subjects: []string{"npm:Left-Pad", "npm:other"}})
	fold(4, &op.ResearchDone{Subject: "third"})
	if len(r.Wanted) != 2 {
		t.Errorf("wanted: %v", r.Wanted)
	}
	fold(5, &op.ResearchDone{Subject: research.Bare(research.Normal("npm:Left-Pad"))})
	if len(r.Wanted) != 1 || !r.Wanted[research.Normal("npm:other")] {
		t.Errorf("wanted after the bare name: %v", r.Wanted)
	}
	fold(6, &op.ResearchDone{Subject: "npm:other"})
	if r.Wanted != nil {
		t.Errorf("wanted at last: %v", r.Wanted)
	}
	for id, want := range map[string]uint64{"npm:left-pad": 5, "npm:other": 6, "npm:third": 4, "npm:none": 0} {
		if got := r.Record(research.Subject{ID: id}); got != want {
			t.Errorf("Record(%s) = %d, want %d", id, got, want)
		}
	}
	for i := range maxUserHosts + 2 {
		fold(7, &op.UserSaid{Text: fmt.Sprintf("see https://h%d.example.com/x", i)})
	}
	if len(r.Hosts) != maxUserHosts || !r.Hosts["h0.example.com"] {
		t.Errorf("%d hosts", len(r.Hosts))
	}
}

// TestWorldChanges: changes that the agent did not make are listed; those after a step can be forgotten.
func TestWorldChanges(t *testing.T) {
	s := new(State)
	s.Steps.Add(steps.Step{Last: 10, World: steps.MarkOf("zero")})
	s.Steps.Add(steps.Step{ID: 1, Last: 20, World: steps.MarkOf("one")})
	s.Current = 1
	if s.worldNow() != steps.MarkOf("one") {
		t.Error("the world is not that of the current step")
	}
	s.World.Gone, s.World.Dirty = true, true
	s.changed(15, &op.WorldChanged{By: ChangedByUser, To: "c", Tree: "tree"})
	if s.World.Gone || s.World.Dirty || s.World.Busy || s.World.Now != (Snapshot{Commit: "c", Tree: "tree"}) ||
		s.worldNow() != steps.MarkOf("tree") {
		t.Errorf("after the user's change: %+v", s.World)
	}
	s.changed(16, &op.WorldChanged{By: ChangedByAgent, To: "d"})
	if !s.World.Now.Partial || len(s.World.Changes) != 1 {
		t.Errorf("after the agent's change: %+v", s.World)
	}
	s.changed(20, &op.WorldChanged{By: ChangedUnknown, To: "e"})
	if !s.World.Now.Partial {
		t.Error("the earlier snapshot's part of the step is forgotten")
	}
	s.snapshot(Snapshot{})
	s.changed(25, &op.WorldChanged{By: ChangedByUser, To: "f", Only: []string{"p"}})
	if !s.World.Now.Partial {
		t.Error("a change of some paths is partial")
	}
	s.changed(26, &op.WorldChanged{By: ChangedByUser, To: "g", Task: "other"})
	if s.World.Now.Commit != "f" {
		t.Error("a change in another task's directory is the last snapshot")
	}
	for step, want := range map[int]string{0: "[15 20 25 26]", 1: "[20 25 26]", -1: "[20 25 26]"} {
		if got := fmt.Sprint(s.ChangesAfter(step)); got != want {
			t.Errorf("after step %d: %s, want %s", step, got, want)
		}
	}
	s.overwritten(1)
	if got := fmt.Sprint(s.World.Changes); got != "[15]" {
		t.Errorf("after the files of step 1 were restored: %s", got)
	}

	for name, tt := range map[string]struct {
		parent *op.Parent
		job    bool
		want   bool
	}{
		"alone": {}, "a subagent": {&op.Parent{}, false, true}, "a copy's": {&op.Parent{Fork: true}, false, false},
		"a command runs": {nil, true, true},
	} {
		s := &State{Opened: op.TaskOpened{Parent: tt.parent}}
		if tt.job {
			s.Jobs.Running = []RunningJob{{}}
		}
		s.snapshot(Snapshot{})
		if got := s.AuthorUnknown(); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
