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
		{"a restore", &op.WorldRestored{ToStep: 1, Written: 2, Deleted: 1}, "files as of step 1: 2 written, 1 deleted"},
		{"a restore in part", &op.WorldRestored{ToStep: 1, Written: 2, Interrupted: true, Notice: "[WORLD]"}, "a restore of the files to step 1 was interrupted: 2 written, 0 deleted since"},
		{"what a tool shows", &op.ToolReturned{Name: "Glob", Display: "2\nfiles", Text: "a\nb"}, "Glob: 2 files"},
		{"what a tool returns", &op.ToolReturned{Name: "Glob", Text: "a\nb"}, "Glob: a b"},
		{"what a tool reports", &op.NoticeGiven{Text: "[tools x] more\nwords] more\n[tools] less\n"}, "more\n→ less"},
		{"a notice", &op.NoticeGiven{Text: "[FILES] more\nwords"}, "[FILES] more words"},
		{"no user", &op.ApprovalDecided{Decision: "refuse", By: "nobody"}, "refused, since no user could be asked"},
		{"plan mode", &op.ApprovalDecided{Decision: "refuse", By: "mode:plan"}, "refused by plan mode"},
		{"changes of the user", &op.WorldChanged{By: "user", NChanged: 2, Changed: []string{"a", "b"}}, "the user changed 2 files: a, b"},
		{"changes", &op.WorldChanged{By: "unknown", NChanged: 3, Changed: []string{"a", "b"}}, "3 files changed, by whom is not known: a, b and 1 more"},
		{"changes of the step", &op.WorldChanged{By: "agent", NChanged: 1, Changed: []string{"a"}}, "the step's changes so far, saved before the user was asked"},
		{"no card", &op.CardsRecalled{}, "no card fits"},
		{"no search", &op.CardsRecalled{Error: "no\nindex", Damage: []string{"a is damaged"}, Degraded: "no embedder"}, "cards could not be searched: no index\n→ a is damaged\n→ cards are searched by words only: no embedder"},
		{"a fact", &op.CardsRecalled{Facts: []string{"f"}, Degraded: "no embedder"}, "told 1 fact of this repository: f\n→ cards are searched by words only: no embedder"},
		{"a step", &op.WorldSaved{Complete: true, Files: 2}, "step 0: 2 files"},
		{"masked", &op.ContextMasked{Limit: 9, Before: 10, After: 8}, "0 results masked: the context had 10 tokens (more than 9), now 8"},
		{"refused by the provider", &op.ContextMasked{Limit: 9, Why: "overflow", Before: 10, After: 8}, "0 results masked: the context had 10 tokens (the provider refused them), now 8"},
		{"a D-Mail that saves nothing", &op.PassDone{Trigger: op.TriggerMail, MessagesRemoved: 2}, "D-Mail: 2 messages of 0 tokens became one of 0: 0 saved"},
		{"an end", &op.PassDone{Trigger: op.TriggerEnd}, "commands that failed and later succeeded, read at the end"},
		{"an end without a card", &op.PassDone{Trigger: op.TriggerEnd, NoCards: "n", Ranges: make([]op.Range, 1)}, "0 tokens of paths that were left, read at the end\n→ no card: n"},
		{"an end without a model", &op.PassDone{Trigger: op.TriggerEnd, Fallback: "f"}, "commands that failed and later succeeded, read at the end\n→ extractor used: f"},
		{"an end without either", &op.PassDone{Trigger: op.TriggerEnd, NoCards: "n", Fallback: "f"}, "commands that failed and later succeeded, read at the end\n→ no card: n (f)"},
		{"a jump without either", &op.PassDone{Trigger: op.TriggerUser, NoCards: "n", Fallback: "f"}, "0 tokens discarded, compacted at the user's request\n→ no card: n\n→ extractor used: f"},
		{"a check that passes", &op.CheckRan{Passed: true, Checks: make([]op.Check, 1)}, "the check passed: 1 of 1 passed"},
		{"a first check", &op.CheckRan{Passed: true, First: true, Checks: make([]op.Check, 1)}, "the check passes already, before anything was done: 1 of 1 passed"},
		{"a check in part", &op.CheckRan{Passed: true, Rating: &op.Rating{Value: 1, Of: 2}}, "the check passed, but only 1 of 2 passed: the others did not run"},
		{"a check without a score", &op.CheckRan{Passed: true, Rating: &op.Rating{Of: 2, Error: "e"}}, "the check passed: no score: e"},
		{"a check that fails", &op.CheckRan{Checks: []op.Check{{}, {Exit: 1, Line: "a\nb"}}, InWorld: "no\ncopy", Changed: []string{"a", "b"}},
			"the check failed: 1 of 2 passed: a b\n→ the checks run in the directory itself, between two steps: no copy\n→ changed since the beginning, and read by the check: a, b"},
		{"a check that says nothing", &op.CheckRan{Checks: []op.Check{{Exit: 1}}}, "the check failed: 0 of 1 passed"},
		{"a check that does not count", &op.CheckRan{Refused: true, Checks: []op.Check{{Exit: 1}}}, "the check does not count: what it reads has changed"},
		{"a reply that was repaired", &op.ModelReplied{Text: "x", Repairs: []string{"content_parts", "another", "left_out:Glob", "unread_call"}},
			"x\n→ Glob: the endpoint refuses a tool; the tool is left out\n→ a tool call comes as text and cannot be read; the model is told to call the tool again"},
		{"words", &op.UserSaid{Source: op.SourceSteer, Text: "Mind\nthe tabs."}, "Mind the tabs."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := LineOf(op.Op{Body: tt.body}, "").String(); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestLineIcon: an operation that was shown already, or says nothing new, has no icon; pictures have few words.
func TestLineIcon(t *testing.T) {
	for _, tt := range []struct {
		body op.Body
		want string // the icon and the words of a picture
	}{
		{&op.JumpRequested{By: op.ByAgent}, "|"},
		{&op.JumpRequested{By: op.ByUser}, "↩|"},
		{&op.JumpIntended{By: op.ByAgent, Reason: "r"}, "↩|"},
		{&op.JumpIntended{By: op.ByAgent}, "|"},
		{&op.JumpIntended{By: op.ByUser, Reason: "r"}, "|"},
		{&op.ModelFailed{Error: "e"}, "!|"},
		{&op.ModelFailed{Error: "e", Wait: new(op.Wait)}, "|"},
		{&op.QuestionAsked{Text: "t"}, "|asks"},
		{&op.QuestionAsked{Text: "t", Parked: true}, "?|asks"},
		{&op.QuestionAnswered{From: "terminal"}, "|"},
		{&op.QuestionAnswered{From: "page"}, "»|answer"},
		{&op.CardsRecalled{}, "|0 read"},
		{&op.CardsRecalled{Degraded: "d"}, "!|0 read"},
		{&op.CardsRecalled{Degraded: "d", Cards: make([]op.CardRef, 1)}, "✦|1 read"},
		{&op.WorldSaved{Complete: true}, "●|"},
		{&op.WorldSaved{Complete: true, Lost: []string{"l"}}, "!|"},
		{&op.WorldRestored{}, "|"},
		{&op.PassDone{}, "◆|pass"},
		{&op.PassDone{Block: "b"}, "◆|block"},
		{&op.PassDone{Cards: []string{"a"}}, "◆|1 ✦"},
		{&op.PassDone{Block: "b", Cards: []string{"a"}}, "◆|block, 1 ✦"},
		{&op.RepairsFound{}, "|0 ✦"},
		{&op.RepairsFound{Pairs: 1}, "◆|0 ✦"},
		{&op.RepairsFound{NotWritten: []string{"n"}}, "◆|0 ✦"},
		{&op.CheckRan{Rating: &op.Rating{Value: 0.5}}, "✗|0.5"},
		{&op.CheckRan{Passed: true, Rating: &op.Rating{Value: 1, Of: 2}}, "✓|1/2"},
		{&op.NoticeGiven{Text: "[FILES] x"}, "|"},
		{&op.NoticeGiven{Text: "[tools] x"}, "!|"},
	} {
		if l := LineOf(op.Op{Body: tt.body}, ""); l.Icon+"|"+l.Short != tt.want {
			t.Errorf("%s %+v: %q, want %q", tt.body.Kind(), tt.body, l.Icon+"|"+l.Short, tt.want)
		}
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
