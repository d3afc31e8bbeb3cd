package session

import (
	"context"
	"slices"
	"strings"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/tool/builtin"
)

// client is a front end that can or cannot be asked.
func client(asks bool) (c Client) {
	if asks {
		c.Approve = func(context.Context, gate.Question) gate.Answer { return gate.Answer{} }
	}
	return c
}

// TestApprovalMode: without a mode calls are asked about where somebody answers, and refused elsewhere.
func TestApprovalMode(t *testing.T) {
	for _, tt := range []struct {
		name   string
		asks   bool
		when   question.When
		mode   string
		notice string
		err    bool
	}{
		{asks: true, mode: "ask"},
		{mode: "deny", notice: "approval mode is deny"},
		{when: question.Refuse, mode: "deny", notice: "approval mode is deny"},
		{when: question.Wait, mode: "ask", notice: "approval mode is ask"},
		{when: question.Stop, mode: "ask", notice: "approval mode is ask"},
		{asks: true, when: question.Wait, mode: "ask"},
		{name: "ask", asks: true, mode: "ask"},
		{name: "ask", mode: "ask", notice: "approval mode ask without a terminal"},
		{name: "ask", when: question.Stop, mode: "ask"},
		{name: "auto", mode: "auto"},
		{name: "deny", mode: "deny"},
		{name: "other", err: true},
	} {
		o := &opening{client: client(tt.asks)}
		o.WhenAsked = string(tt.when)
		mode, notice, err := o.approvalMode(tt.name)
		if mode != tt.mode || (notice == "") != (tt.notice == "") || !strings.HasPrefix(notice, tt.notice) ||
			(err != nil) != tt.err {
			t.Errorf("%+v: %q, %q, %v", tt, mode, notice, err)
		}
	}
}

// TestCheckedGoal: a goal is what commands check; what only a check gives meaning to is refused without one.
func TestCheckedGoal(t *testing.T) {
	for _, tt := range []struct {
		goal *op.Goal
		kept bool
		err  string
	}{
		{nil, false, ""},
		{&op.Goal{}, false, ""},
		{&op.Goal{Until: []string{"make"}, Score: "n", Frozen: true, KeepLast: true}, true, ""},
		{&op.Goal{Until: []string{"make", " "}}, false, "until"},
		{&op.Goal{Score: "n"}, false, "score"},
		{&op.Goal{Frozen: true}, false, "until-frozen"},
		{&op.Goal{KeepLast: true}, false, "keep-last"},
	} {
		got, err := checkedGoal(tt.goal)
		if (got != nil) != tt.kept || (err == nil) != (tt.err == "") ||
			err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%+v: %+v, %v", tt.goal, got, err)
		}
	}
	n := &runtime.New{TaskOpened: op.TaskOpened{EAS: 9, Window: 5, EASFrom: "table"}}
	for eas, want := range map[int]string{9: "lower the EAS", 0: "give an EAS of at most 5"} {
		if err := (&Request{EAS: eas}).easTooLarge(n); !strings.Contains(err.Error(), want) {
			t.Errorf("EAS %d: %v", eas, err)
		}
	}
}

// TestFollow: the settings go before what the agent specifies; its tools are added, each once.
func TestFollow(t *testing.T) {
	names := builtin.OptInNames()
	spec := &agent.Spec{
		Model: "m", Sandbox: "off", Approval: "auto", Tools: append(slices.Clone(names), "Bash"),
		ExcludeTools: names[:1],
	}
	var s Settings
	s.tools = names[1:2]
	s.follow(spec)
	if s.Model != "m" || s.Sandbox != "off" || s.Approval != "auto" || !slices.Equal(s.tools, names[1:]) {
		t.Errorf("from the agent: %+v, tools %q", s, s.tools)
	}
	s = Settings{Model: "own", Sandbox: "world", Approval: "ask"}
	s.follow(&agent.Spec{Model: "m", Sandbox: "off", Approval: "auto"})
	if s.Model != "own" || s.Sandbox != "world" || s.Approval != "ask" || s.tools != nil {
		t.Errorf("set: %+v", s)
	}
}
