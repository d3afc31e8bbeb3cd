package session

import (
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// TestContinues: a resume without words goes on with the last turn, unless something else is due or it is done.
func TestContinues(t *testing.T) {
	ended := func(reason string, answered bool) state.Turn {
		return state.Turn{End: &op.TurnEnded{Reason: reason}, Answered: answered}
	}
	for name, tt := range map[string]struct {
		change  func(st *state.State)
		message string
		want    bool
		err     string
	}{
		"interrupted":         {change: func(st *state.State) { st.Turn = ended("interrupted", false) }, want: true},
		"done, not answered":  {change: func(st *state.State) { st.Turn = ended("done", false) }, want: true},
		"stopped, answered":   {change: func(st *state.State) { st.Turn = ended("limit", true) }, want: true},
		"done":                {change: func(st *state.State) { st.Turn = ended("done", true) }, err: "task t is done"},
		"done, further words": {change: func(st *state.State) { st.Turn = ended("done", true) }, message: "more"},
		"no request":          {err: "task t has no request yet"},
		"a first request":     {message: "go"},
		"under way":           {change: func(st *state.State) { st.Turn.Open = true }},
		"a jump is under way": {change: func(st *state.State) { st.Jump.Intended = new(state.Jumping) }},
		"a jump is requested": {change: func(st *state.State) { st.Jump.Pending = new(state.Pending) }},
		"a restore":           {change: func(st *state.State) { st.World.Restoring = new(op.RestoreIntended) }},
	} {
		st := &state.State{Opened: op.TaskOpened{Task: "t"}}
		if tt.change != nil {
			tt.change(st)
		}
		got, err := continues(st, tt.message)
		if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestResumedLimits: each limit is the one given now, or else the task's, or else the configuration's.
func TestResumedLimits(t *testing.T) {
	o := &opening{}
	o.Limits, o.Fallback = op.Limits{Steps: 1}, op.Limits{Steps: 9, Tokens: 9, USD: 9, Time: 9}
	got := o.resumedLimits(&state.State{Limits: op.Limits{Steps: 5, Tokens: 5, USD: 5}})
	if want := (op.Limits{Steps: 1, Tokens: 5, USD: 5, Time: 9}); got != want || o.Limits != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	for want, l := range map[string]op.Limits{
		"": {}, "max-cost 0.5": {USD: 0.5}, "max-tokens 7, max-steps 3": {Tokens: 7, Steps: 3}, "max-time 1s": {Time: 1e9},
	} {
		if got := limitsText(l); got != want {
			t.Errorf("%+v: %q, want %q", l, got, want)
		}
	}
}

// TestResumedApproval: a mode that the user chose goes before the one that the task was started with.
func TestResumedApproval(t *testing.T) {
	for name, tt := range map[string]struct {
		set, opened, now, agent string
		mode, why               string
	}{
		"given":        {set: "deny", opened: "ask", now: "auto", mode: "deny", why: "you set it"},
		"chosen since": {opened: "ask", now: "auto", agent: "edits", mode: "auto", why: "the user chose it in this task"},
		"started auto": {opened: "auto", now: "auto", agent: "deny", mode: "auto", why: "the task was started with it"},
		"edits":        {opened: "edits", now: "edits", mode: "edits", why: "the task was started with it"},
		"the agent's":  {opened: "ask", now: "ask", agent: "edits", mode: "edits", why: "set by the agent a"},
		"the default":  {opened: "deny", now: "deny", mode: "ask", why: "it is the default at a terminal"},
	} {
		o := &opening{client: client(true)}
		o.Approval = tt.set
		st := &state.State{Opened: op.TaskOpened{Approval: tt.opened, Agent: &op.Agent{Name: "a", Approval: tt.agent}}}
		st.Grants.Mode = tt.now
		mode, notice, err := o.resumedApproval(st)
		if mode != tt.mode || !strings.Contains(notice, "mode is "+tt.mode+": "+tt.why+";") || err != nil {
			t.Errorf("%s: %q, %q, %v", name, mode, notice, err)
		}
	}
	o := &opening{client: client(true)}
	if mode, _, err := o.resumedApproval(&state.State{}); mode != "ask" || err != nil {
		t.Errorf("a task without an agent: %q, %v", mode, err)
	}
}
