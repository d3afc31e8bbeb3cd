package timeline

import (
	"slices"
	"testing"

	"anamnesis/opstream/op"
)

// TestLineOf: what a figure says is true of it, and an operation of a newer
// program is said to be one.
func TestLineOf(t *testing.T) {
	exit := 2
	for _, tt := range []struct {
		name string
		body op.Body
		want string
	}{
		{"one span of several", &op.PassDone{RangeTokens: 636, EAS: 2000, Trigger: "jump"}, "636 tokens discarded, with other spans more than EAS 2000"},
		{"a pass the user asked for", &op.PassDone{RangeTokens: 78, EAS: 2000, Trigger: op.TriggerUser}, "78 tokens discarded, compacted at the user's request"},
		{"a jump within a step", &op.JumpDone{From: 1, To: 1}, "jump to the end of step 1: 0 files changed"},
		{"a jump of the user", &op.JumpRequested{To: 1, By: op.ByUser, Reason: "r"}, "jump to step 1 asked for by the user: r"},
		{"more than the span", &op.PassDone{RangeTokens: 2001, EAS: 2000, Trigger: "jump"}, "2001 tokens discarded > EAS 2000"},
		{"a newer program's", nil, "a kind of operation this program does not know"},
		{"a call that failed", &op.ToolReturned{Name: "Bash", Exit: &exit, Text: "no\nsuch  file"}, "Bash (exit 2): no such file"},
		{"a call whose output says why it failed", &op.ToolReturned{Name: "Bash", Exit: &exit, Display: "exit 2", Stdout: "=== RUN TestSum\n    sum_test.go:7: got 3, want 4\n--- FAIL: TestSum (0.00s)\nFAIL\n"}, "Bash (exit 2): sum_test.go:7: got 3, want 4"},
		{"a reply that calls", &op.ModelReplied{Text: "I look.", Calls: []op.Call{{Name: "ReadFile", Args: `{"path":"a.go"}`}}}, "I look. ▸ ReadFile(a.go)"},
		{"an empty reply", &op.ModelReplied{Finish: "stop"}, "the reply was empty (stop)"},
		{"a restore without effect", &op.WorldRestored{ToStep: 1, Interrupted: true}, "a restore of the files to step 1 was interrupted, and no file was moved"},
		{"a restore of unknown effect", &op.WorldRestored{ToStep: 1, Interrupted: true, Notice: "[WORLD]"}, "a restore of the files to step 1 was interrupted, and its changes are unknown"},
		{"an approval", &op.ApprovalDecided{Decision: "allow", By: "person", Rules: []string{"Bash(ls *)"}}, "allowed by the user, and Bash(ls *)"},
		{"a refusal", &op.ApprovalDecided{Decision: "refuse", By: "mode:deny"}, "refused, since approval is deny"},
		{"a refusal with words", &op.ApprovalDecided{Decision: "refuse", By: "person", Feedback: "use\nmake"}, "refused by the user: use make"},
		{"a task taken up", &op.TaskResumed{PID: 7}, "taken up by process 7"},
		{"a task taken up elsewhere", &op.TaskResumed{PID: 7, Model: "m", Dir: "/w", Limits: &op.Limits{}, Goal: &op.Goal{Until: []string{"a", "b"}}},
			"taken up by process 7 m in /w with other limits with the check a, then b"},
		{"a limit", &op.TaskResumed{Limits: &op.Limits{}}, "a limit was raised"},
		{"a model of another agent", &op.TaskResumed{Model: "m", Limits: &op.Limits{}}, "model m"},
		{"a copy", &op.TaskResumed{Task: "two", Limits: &op.Limits{}}, "copied as task two"},
		{"another model", &op.TaskResumed{PID: 7, Model: "m", EAS: 5, Why: "no\nanswer"}, "no answer; m takes over, EAS 5"},
		{"a repository", &op.GitSeen{Dir: "d", GitAt: op.GitAt{Head: "refs/heads/main"}}, "git at d: main without a commit"},
		{"a repository that does not fit", &op.GitSeen{Dir: "d", GitAt: op.GitAt{Head: "refs/heads/main"}, Unbundled: "too\nlarge"}, "git at d: main without a commit; the bucket does not get its new commits: too large"},
		{"a pass on spans", &op.PassBegun{Ranges: make([]op.Range, 2)}, "2 spans of paths that were left"},
		{"a pass on repairs", &op.PassBegun{}, "commands that failed and later succeeded"},
		{"a strategy for jumps", &op.ReflectAsked{Jumps: 3, To: 1, Model: "m"}, "3 jumps back to step 1 did not help: asking the Reflect-Agent (m)"},
		{"a strategy for a check", &op.ReflectAsked{Jumps: 3, By: op.ByGoal, Model: "m"}, "the check got no better in 3 runs: asking the Reflect-Agent (m)"},
		{"a strategy", &op.StrategyGiven{Diagnosis: "wrong", Plan: []string{"look"}, Question: "why?"}, "strategy: wrong\n→ look"},
		{"a strategy that asks", &op.StrategyGiven{Diagnosis: "wrong", Question: "why?"}, "strategy: wrong\n→ asks the user: why?"},
		{"words", &op.UserSaid{Source: op.SourceSteer, Text: "Mind\nthe tabs."}, "Mind the tabs."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := LineOf(op.Op{Body: tt.body}, "").String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLineOfAll: every kind of operation has words.
func TestLineOfAll(t *testing.T) {
	for _, empty := range op.Bodies() {
		body, err := op.Decode(empty.Kind(), []byte(`{"name":"n","text":"t","error":"e","reason":"r"}`))
		if err != nil {
			t.Fatal(err)
		}
		if LineOf(op.Op{Body: body}, "").Text == "" {
			t.Errorf("%s has no words", empty.Kind())
		}
	}
}

// TestWithdrawn: a pass for a jump that is dropped has no effect, and a block of
// it stands nowhere.
func TestWithdrawn(t *testing.T) {
	b := story(t, "a b")
	w := &writer{t: t, b: b}
	w.add(3, &op.JumpRequested{To: 1, Reason: "r", By: "person"})
	w.add(3, &op.PassDone{Trigger: "person", Block: "b"})
	w.add(3, &op.JumpDropped{To: 1, Why: "no"})
	rows := b.Timeline().Rows
	pass := rows[len(rows)-2]
	if pass.Kind != RowPass || pass.Block || pass.At != 2 {
		t.Errorf("the pass is %+v", pass)
	}
}

// TestTimelineIsItsOwn: what Timeline gave does not change with what is added.
func TestTimelineIsItsOwn(t *testing.T) {
	b := story(t, "a b")
	before := b.Timeline()
	rows := slices.Clone(before.Rows)
	(&writer{t: t, b: b}).jump(0)
	if !slices.EqualFunc(rows, before.Rows, func(x, y Row) bool { return x.OnPath == y.OnPath && x.Text == y.Text }) {
		t.Error("the rows given before have changed")
	}
	if after := b.Timeline(); after.Rows[1].OnPath || after.Current != 0 {
		t.Errorf("step 1 is off the path now: %+v", after.Rows[1])
	}
}
