package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/optest"
	"anamnesis/orchestrator/state/steps"
)

// TestImpossibleStreams: operations that cannot follow one another are refused.
func TestImpossibleStreams(t *testing.T) {
	called := `tool.called 1 {"call":"a","name":"Bash","args":"{}"}` + "\n"
	for name, text := range map[string]string{
		"a second beginning":         optest.Opened + "task.opened 0 {}",
		"a step too far":             optest.Begun + "model.asked 2 {}",
		"a call outside a reply":     optest.Begun + called,
		"a result outside a reply":   optest.Begun + `tool.returned 1 {"call":"a"}`,
		"an unknown call":            optest.Called + `tool.called 1 {"call":"z"}`,
		"a process of no call":       optest.Called + `tool.started 1 {"call":"z"}`,
		"the result of no call":      optest.Called + `tool.returned 1 {"call":"z"}`,
		"two results":                optest.Called + `tool.returned 1 {"call":"a"}` + "\n" + `tool.returned 1 {"call":"a"}`,
		"a step that ends twice":     optest.Stepped + `world.saved 1 {"parent":0,"commit":"c1"}`,
		"a step that continues none": optest.Results + `world.saved 1 {"parent":-1,"commit":"c1"}`,
		"a step that continues itself": optest.Results +
			`world.saved 1 {"parent":1,"commit":"c1"}`,
		"a step that continues a later one": optest.Results + `world.saved 1 {"parent":2,"commit":"c1"}`,
		"a jump before the beginning":       optest.Stepped + `jump.done 2 {"to":-1}`,
		"a jump into the step under way":    optest.Stepped + `jump.done 2 {"to":2}`,
		"a jump beyond the last step":       optest.Stepped + `jump.done 1 {"to":2}`,
		"a D-Mail before the beginning":     optest.Stepped + `mail.delivered 2 {"to":-1}`,
		"a D-Mail to the step under way":    optest.Stepped + `mail.delivered 2 {"to":2}`,
		"a D-Mail beyond the last step":     optest.Stepped + `mail.delivered 1 {"to":2}`,
	} {
		ops := optest.Parse(t, text)
		s := optest.Fold(t, Fold, ops[:len(ops)-1])
		if err := Fold(s, ops[len(ops)-1]); !errors.Is(err, ErrStream) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s := optest.Fold(t, Fold, optest.Parse(t, optest.Begun))
	for _, seq := range []uint64{s.Last, s.Last + 2} {
		if err := Fold(s, op.Op{Seq: seq}); !errors.Is(err, ErrStream) {
			t.Errorf("op %d follows op %d: %v", seq, s.Last, err)
		}
	}
}

// TestFold: what operations make of the state, where it decides what the task does next or what users read.
func TestFold(t *testing.T) {
	// Step 1 ran a call that changed the files to t1.
	changed := optest.Called + `tool.called 1 {"call":"a","name":"Bash","args":"{}","world":"t0","changes":true}
tool.returned 1 {"call":"a","name":"Bash"}
tool.returned 1 {"call":"b","name":"Bash"}
world.saved 1 {"parent":0,"commit":"c1","tree":"t1"}
`
	call := func(step int, world string, rest string) string {
		return fmt.Sprintf(`model.replied %[1]d {"calls":[{"id":"x","name":"Bash","args":"{}"}],"finish":"tool_calls"}
tool.called %[1]d {"call":"x","name":"Bash","args":"{}","world":%[2]q}
tool.returned %[1]d {"call":"x","name":"Bash"%[3]s}
`, step, world, rest)
	}
	back := func(by, rest string) string {
		return changed + fmt.Sprintf(`jump.requested 2 {"to":0,"by":%[1]q}
jump.intended 2 {"to":0,"backward":true,"by":%[1]q,"reason":"wrong"%[2]s}
`, by, rest)
	}
	user := `world.changed 2 {"by":"user","to_commit":"u","tree":"tu"}` + "\n"
	reply := `model.replied 2 {"text":%q,"finish":%q}` + "\n"
	step2 := `world.saved 2 {"parent":1,"commit":"c2"}` + "\n"
	pass := `pass.done 2 {"trigger":%q,"ranges":[{"first":5,"last":8}],"block":%q,"words":"w","target":7,"cards":["k"]}` + "\n"
	reflected := `jump.requested 2 {"to":0,"by":"agent"}` + "\n" + `strategy.given 2 {"to":0,"question":%q%s}` + "\n"
	dirty := func(s *State) any { return s.World.Dirty }
	runs := func(s *State) any { return len(s.Goal.Runs) }
	answered := func(s *State) any { return s.Turn.Answered }
	changes := func(s *State) any { return fmt.Sprint(s.World.Changes, s.World.Restoring != nil) }
	undone := func(s *State) any { return fmt.Sprint(len(s.Calls.Undone), s.Calls.Repeats.Epoch) }
	answer := func(s *State) any { return s.Said.Answer }
	said := func(s *State) any { return s.Said.First + ", " + s.Said.Request }
	failed := func(s *State) any { return s.Steps.At(1).Failed }
	earlier := func(world string) func(s *State) any {
		return func(s *State) any {
			return len(s.Calls.Repeats.Earlier(loop.Call{World: world, Tool: "Bash", Args: "{}"}, s.Context.Visible()))
		}
	}
	ticks := func(s *State) any {
		return strings.TrimSpace(fmt.Sprintf("%d %s", len(s.Jump.Ticks), s.Steps.At(1).LeftBy))
	}
	epoch := func(s *State) any { return s.Calls.Repeats.Epoch }
	compacted := func(s *State) any {
		p := s.Jump.Pending
		waits := 0
		if p != nil {
			waits = len(p.Passes)
		}
		return fmt.Sprint(s.Steps.At(1).Compacted, s.Steps.At(1).Read, s.Steps.At(1).Carried, " ", s.Totals.Blocks,
			s.Totals.Passes, s.Totals.CardsWritten,
			" ", waits, " ", s.Pressure.Target, s.Pressure.Compacted, " ", s.Turn.Learned)
	}
	turn := func(s *State) any { return fmt.Sprint(s.Turn.Open, s.Turn.Steps) }
	for _, tt := range []struct {
		name, ops string
		of        func(s *State) any
		want      any
	}{
		{"a call that may write", optest.Called + `tool.called 1 {"call":"a","changes":true}`, dirty, true},
		{"a call that only reads", optest.Called + `tool.called 1 {"call":"a"}`, dirty, false},
		{"one that reads after one that writes", optest.Called + `tool.called 1 {"call":"a","changes":true}` + "\n" + `tool.called 1 {"call":"b"}`, dirty, true},

		{"the way back is given up", optest.Stepped + `check.ran 2 {}` + "\n" + `jump.requested 2 {"to":1,"by":"goal"}` + "\n" + `jump.dropped 2 {"to":1}`, runs, 0},
		{"the way to another step is", optest.Stepped + `check.ran 2 {}` + "\n" + `jump.requested 2 {"to":0,"by":"goal"}` + "\n" + `jump.dropped 2 {"to":0}`, runs, 1},
		{"the agent's jump is", optest.Stepped + `check.ran 2 {}` + "\n" + `jump.requested 2 {"to":1,"by":"agent"}` + "\n" + `jump.dropped 2 {"to":1}`, runs, 1},
		{"nothing is", optest.Stepped + `check.ran 2 {}` + "\n" + `jump.dropped 2 {"to":1}`, runs, 1},

		{"a hook that says nothing", optest.Stepped + fmt.Sprintf(reply, "done", "stop") + `hook.ran 2 {}`, answered, true},
		{"a hook that sends the agent on", optest.Stepped + fmt.Sprintf(reply, "done", "stop") + `hook.ran 2 {"go_on":true}`, answered, false},
		{"a hook before the answer", optest.Stepped + `hook.ran 2 {}`, answered, false},

		{"a restore", optest.Stepped + user + `restore.intended 2 {"to_step":1}` + "\n" + `world.restored 2 {"to_step":1}`, changes, "[10] false"},
		{"a restore that overwrites", optest.Stepped + user + `restore.intended 2 {"to_step":1,"overwrite":true}` + "\n" + `world.restored 2 {"to_step":1}`, changes, "[] false"},
		{"one of some paths", optest.Stepped + user + `restore.intended 2 {"to_step":1,"overwrite":true,"paths":["a"]}` + "\n" + `world.restored 2 {"to_step":1}`, changes, "[10] false"},
		{"one that was given up", optest.Stepped + user + `restore.intended 2 {"to_step":1,"overwrite":true}` + "\n" + `world.restored 2 {"to_step":1,"abandoned":true}`, changes, "[10] false"},
		{"its end alone", optest.Stepped + user + `world.restored 2 {"to_step":1}`, changes, "[10] false"},
		{"its snapshot", optest.Stepped + `world.restored 2 {"to_step":1,"base":"b","tree":"tb"}`, func(s *State) any { return s.World.Now }, Snapshot{Commit: "b", Tree: "tb"}},
		{"without a snapshot", optest.Stepped + user + `world.restored 2 {"to_step":1}`, func(s *State) any { return s.World.Now }, Snapshot{Commit: "u", Tree: "tu"}},
		{"a restore after a jump", back("agent", "") + "jump.done 2 {\"to\":0}\n" + `world.restored 2 {"to_step":0}`, undone, "1 0"},
		{"a restore that moved files", back("agent", "") + "jump.done 2 {\"to\":0}\n" + `world.restored 2 {"to_step":0,"notice":"n"}`, undone, "0 1"},

		{"words", optest.Opened + `user.said 0 {"text":"more","source":"request"}`, said, "go, more"},
		{"a steer", optest.Opened + `user.said 0 {"text":"more","source":"steer"}`, said, "go, go"},
		{"words after a session without", "task.opened 0 {}\nuser.said 0 {\"text\":\"" + NoPrompt + "\",\"source\":\"request\"}\n" + `user.said 0 {"text":"more","source":"request"}`, said, "more, more"},
		{"words while a jump waits", back("agent", "") + "jump.done 2 {\"to\":0}\njump.requested 2 {\"to\":0,\"by\":\"agent\"}\n" + `user.said 2 {"text":"x"}`, ticks, "1 wrong"},

		{"an answer", optest.Stepped + fmt.Sprintf(reply, "ab", "stop"), answer, "ab"},
		{"one that was cut off", optest.Stepped + fmt.Sprintf(reply, "ab", "length") + step2 + `model.replied 3 {"text":"c","finish":"stop"}`, answer, "abc"},
		{"an earlier one", optest.Stepped + fmt.Sprintf(reply, "ab", "stop") + step2 + `model.replied 3 {"text":"c","finish":"stop"}`, answer, "c"},
		{"a call that was cut off", optest.Stepped + `model.replied 2 {"text":"ab","calls":[{"id":"x"}],"finish":"length"}` + "\n" + step2 + `model.replied 3 {"text":"c","finish":"stop"}`, answer, "c"},
		{"a note of a checkpoint", optest.Stepped + fmt.Sprintf(reply, "ab", "stop") + step2 + `model.replied 3 {"text":"c","finish":"checkpoint"}`, answer, "ab"},
		{"an empty one", optest.Stepped + fmt.Sprintf(reply, "ab", "stop") + step2 + `model.replied 3 {"text":" ","finish":"stop"}`, answer, "ab"},
		{"a call of the reply before", optest.Called + `model.replied 1 {"joins":true,"calls":[{"id":"c"}]}`, func(s *State) any { return len(s.Reply.Calls) }, 3},
		{"of none", optest.Stepped + `model.replied 2 {"joins":true,"calls":[{"id":"c"}]}`, func(s *State) any { return len(s.Reply.Calls) }, 1},
		{"another reply", optest.Called + `model.replied 1 {"calls":[{"id":"c"}]}`, func(s *State) any { return len(s.Reply.Calls) }, 1},

		{"a call that worked", optest.Called + `tool.returned 1 {"call":"a","exit":0}`, failed, 0},
		{"an error", optest.Called + `tool.returned 1 {"call":"a","is_error":true}`, failed, 1},
		{"a refusal", optest.Called + `tool.returned 1 {"call":"a","refused":true}`, failed, 1},
		{"an exit code", optest.Called + `tool.returned 1 {"call":"a","exit":2}`, failed, 1},
		{"a run", optest.Stepped + call(2, "w", ""), earlier("w"), 1},
		{"of unknown outcome", optest.Stepped + call(2, "w", `,"unknown":true`), earlier("w"), 0},
		{"that was not begun", optest.Stepped + strings.Replace(call(2, "w", ""), "tool.called", "#", 1), earlier(""), 0},
		{"a file was written", optest.Called + `tool.returned 1 {"call":"a","writes":["f"]}`, func(s *State) any { return s.Reply.Wrote }, true},
		{"a write that failed", optest.Called + `tool.returned 1 {"call":"a","writes":["f"],"is_error":true}`, func(s *State) any { return s.Reply.Wrote }, false},
		{"then one that read", optest.Called + `tool.returned 1 {"call":"a","writes":["f"]}` + "\n" + `tool.returned 1 {"call":"b"}`, func(s *State) any { return s.Reply.Wrote }, true},

		{"an ignored file was written", changed + call(2, "t1", `,"writes":["f"]`) + `world.saved 2 {"parent":1,"commit":"c2","tree":"t1"}`, epoch, 1},
		{"another file was", changed + call(2, "t1", `,"writes":["f"]`) + `world.saved 2 {"parent":1,"commit":"c2","tree":"t2"}`, epoch, 0},
		{"none was", changed + call(2, "t1", "") + `world.saved 2 {"parent":1,"commit":"c2","tree":"t1"}`, epoch, 0},
		{"none, without a call", changed + `world.saved 2 {"parent":1,"commit":"c2","tree":"t1"}`, epoch, 0},
		{"one was, the snapshot is of its midst", changed + call(2, "t1", `,"writes":["f"]`) + `world.changed 2 {"by":"agent","to_commit":"u","tree":"t2"}` + "\n" + `world.saved 2 {"parent":1,"commit":"c2","tree":"t2"}`, epoch, 0},

		{"the agent's jump", back("agent", "") + `jump.done 2 {"to":0}`, ticks, "1 wrong"},
		{"the user's", back("person", "") + `jump.done 2 {"to":0}`, ticks, "0 wrong"},
		{"a jump without an intent", changed + `jump.done 2 {"to":0}`, ticks, "0"},
		{"a jump forward", strings.Replace(back("agent", ""), `"backward":true`, `"backward":false`, 1) + `jump.done 2 {"to":0}`, ticks, "0 wrong"},
		{"a jump that overwrites", strings.Replace(back("person", `,"overwrite":true`), "jump.requested", user+"jump.requested", 1) + `jump.done 2 {"to":0}`, changes, "[] false"},
		{"one that was abandoned", strings.Replace(back("person", `,"overwrite":true`), "jump.requested", user+"jump.requested", 1) + `jump.done 2 {"to":0,"abandoned":true}`, changes, "[11] false"},
		{"one that does not", strings.Replace(back("person", ""), "jump.requested", user+"jump.requested", 1) + `jump.done 2 {"to":0}`, changes, "[11] false"},

		{"a pass", optest.Stepped + fmt.Sprintf(pass, "jump", "b"), compacted, "true true false 1 1 1 0 0 0 []"},
		{"at the end", optest.Stepped + fmt.Sprintf(pass, "end", ""), compacted, "false true false 0 1 1 0 0 0 [k]"},
		{"at the end, while a jump waits", optest.Stepped + "jump.requested 2 {\"to\":0}\n" + fmt.Sprintf(pass, "end", ""), compacted, "false true false 0 1 1 0 0 0 [k]"},
		{"for a jump", optest.Stepped + "jump.requested 2 {\"to\":0}\n" + fmt.Sprintf(pass, "jump", "b"), compacted, "false false false 0 1 1 1 0 0 []"},
		{"which is made", optest.Stepped + "jump.requested 2 {\"to\":0}\n" + fmt.Sprintf(pass, "jump", "b") + "jump.intended 2 {\"to\":0}\n", compacted, "true true false 1 1 1 0 0 0 []"},
		{"after its intent", optest.Stepped + "jump.requested 2 {\"to\":0}\njump.intended 2 {\"to\":0}\n" + fmt.Sprintf(pass, "jump", "b"), compacted, "true true false 1 1 1 0 0 0 []"},
		{"to make room before a jump", optest.Stepped + "jump.requested 2 {\"to\":0}\n" + fmt.Sprintf(pass, "window", "b"), compacted, "true true false 1 1 1 0 7 8 []"},
		{"without a block", optest.Stepped + fmt.Sprintf(pass, "jump", ""), compacted, "false false false 0 1 1 0 0 0 []"},
		{"of a D-Mail", optest.Stepped + fmt.Sprintf(pass, "mail", "b"), compacted, "true false true 1 1 1 0 0 0 []"},

		{"a question", optest.Stepped + fmt.Sprintf(reflected, "q", ""), func(s *State) any { return s.Jump.Pending.Question }, "q"},
		{"a plan and a question", optest.Stepped + fmt.Sprintf(reflected, "q", `,"plan":["p"]`), func(s *State) any { return s.Jump.Pending.Question }, ""},
		{"a strategy for another step", back("agent", "") + "jump.done 2 {\"to\":0}\n" + `strategy.given 2 {"to":1,"plan":["p"]}`, ticks, "1 wrong"},
		{"a strategy for this one", back("agent", "") + "jump.done 2 {\"to\":0}\n" + `strategy.given 2 {"to":0,"plan":["p"]}`, ticks, "0 wrong"},
		{"a question without a jump", optest.Stepped + `strategy.given 2 {"to":0,"question":"q"}`, func(s *State) any { return s.Jump.Pending == nil }, true},

		{"the turn is over", optest.Begun + "model.asked 1 {\"last_seq\":4}\nturn.ended 1 {\"reason\":\"done\"}", turn, "false 0"},
		{"but for words that came meanwhile", optest.Begun + "model.asked 1 {\"last_seq\":4}\nuser.said 1 {\"text\":\"x\"}\nturn.ended 1 {\"reason\":\"done\"}", turn, "true 0"},
		{"which a limit ends, too", optest.Begun + "model.asked 1 {\"last_seq\":4}\nuser.said 1 {\"text\":\"x\"}\nturn.ended 1 {\"reason\":\"limit\"}", turn, "false 0"},
		{"words that were seen", optest.Begun + "user.said 1 {\"text\":\"x\"}\nmodel.asked 1 {\"last_seq\":5}\nturn.ended 1 {\"reason\":\"done\"}", turn, "false 0"},
		{"step 0 is none of the turn's", optest.Begun, turn, "true 0"},
		{"steps", optest.Stepped, turn, "true 1"},

		{"pairs to be read", optest.Stepped + `repairs.found 2 {"range":{"first":1,"last":2},"asks":true,"cards":["a","b"],"superseded":["c"]}`, func(s *State) any { return fmt.Sprint(s.Turn.Pairs.Last, s.Totals.CardsWritten, s.Turn.Learned) }, "2 1 [a b]"},
		{"pairs that nobody reads", optest.Stepped + `repairs.found 2 {"range":{"first":1,"last":2}}`, func(s *State) any { return s.Turn.Pairs.Last }, uint64(0)},
	} {
		if got := tt.of(optest.Fold(t, Fold, optest.Parse(t, tt.ops))); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// TestDecided: what the user or a guard decides on one call holds for later ones.
func TestDecided(t *testing.T) {
	undone := func() *State {
		s := &State{Reply: &Reply{Calls: []CallState{{Call: op.Call{ID: "a", Name: "Bash", Args: "{}"}}}}}
		s.Steps.Add(steps.Step{Ended: true})
		s.World.Now = Snapshot{Tree: "t"}
		s.Calls.Undone = map[loop.Key]Undone{undoneKey(steps.MarkOf("t"), "Bash", "{}"): {}}
		return s
	}
	for name, tt := range map[string]struct {
		b    op.ApprovalDecided
		want string
	}{
		"once":                        {op.ApprovalDecided{By: "user", Print: "p"}, " map[] [] 1 map[]"},
		"for the task":                {op.ApprovalDecided{By: "user", ForTask: true}, "auto map[] [] 1 map[]"},
		"for the same call":           {op.ApprovalDecided{By: "user", Same: true, Print: "p"}, " map[p:true] [] 1 map[]"},
		"for a call without a print":  {op.ApprovalDecided{By: "user", Same: true}, " map[] [] 1 map[]"},
		"by a rule":                   {op.ApprovalDecided{By: "user", Rules: []string{"Bash(go *)"}}, " map[] [Bash(go *)] 1 map[]"},
		"told that it is undone":      {op.ApprovalDecided{By: ByUndoneGuard, Call: "a"}, " map[] [] 0 map[]"},
		"told of another call":        {op.ApprovalDecided{By: ByUndoneGuard, Call: "b"}, " map[] [] 1 map[]"},
		"told that it never starts":   {op.ApprovalDecided{By: ByNeverStarts, Subjects: []string{"f"}}, " map[] [] 1 map[f:true]"},
		"refused until it is studied": {op.ApprovalDecided{By: ByResearchGuard, Subjects: []string{"f"}}, " map[] [] 1 map[]"},
	} {
		s := undone()
		s.decided(&tt.b)
		got := fmt.Sprint(s.Grants.Mode, " ", s.Grants.Prints, s.Grants.Rules, len(s.Calls.Undone), s.Calls.NeverStarts)
		if got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	s := undone()
	s.Reply = nil
	if s.decided(&op.ApprovalDecided{By: ByUndoneGuard, Call: "a"}); len(s.Calls.Undone) != 1 || s.Reply.Open() != nil {
		t.Errorf("without a reply: %+v", s.Calls)
	}
	if got := WithNames([]string{"a"}, []string{"b", "a", "b"}); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("names: %q", got)
	}
}

// TestPassFor: a jump makes a pass if it, or all that was left so far, is more than the model attends to.
func TestPassFor(t *testing.T) {
	// Step 1 was left earlier, a jump leaves 2 and 3; all have 100 tokens, step 0 none.
	s := &State{Current: 3}
	for id, parent := range []int{0, 0, 0, 2} {
		s.Steps.Add(steps.Step{ID: id, Parent: parent, First: uint64(id + 1), Last: uint64(id + 1), Ended: true})
		s.tokenSums.add(uint64(100 * min(id, 1)))
	}
	for _, tt := range []struct {
		name   string
		eas    int
		forced bool
		want   string
	}{
		{"all are few", 300, false, "[]"},
		{"all are few, but the user wants it", 300, true, "[{3-4 200 person}]"},
		{"all are too many", 299, false, "[{2 100 cumulative} {3-4 200 cumulative}]"},
		{"all are too many, and the user wants it", 299, true, "[{2 100 cumulative} {3-4 200 cumulative}]"},
		{"the jump's are too many", 199, false, "[{3-4 200 jump}]"},
		{"the jump's are just not", 200, false, "[{2 100 cumulative} {3-4 200 cumulative}]"},
		{"the others are, too", 99, true, "[{2 100 cumulative} {3-4 200 cumulative}]"},
	} {
		s.Model.EAS = tt.eas
		if got := fmt.Sprint(s.PlannedPasses(0, []int{2, 3}, tt.forced)); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	for r, want := range map[op.Range]int{{First: 1, Last: 4}: 300, {First: 2, Last: 2}: 100, {First: 4, Last: 9}: 100, {First: 4, Last: 4}: 100, {First: 5, Last: 9}: 0, {First: 3, Last: 2}: 0, {}: 0, {Last: 4}: 0} {
		if got := s.Tokens(r); got != want {
			t.Errorf("operations %v have %d tokens, want %d", r, got, want)
		}
	}
}

// folded is a stream's snapshot.
type snapshotOf struct {
	fold []byte
	seq  uint64
	ok   bool
}

func (s snapshotOf) Folded() ([]byte, uint64, bool) { return s.fold, s.seq, s.ok }

// TestFromSnapshot: a snapshot is used if it is whole and of its operation; otherwise all operations are read again.
func TestFromSnapshot(t *testing.T) {
	s := optest.Fold(t, Fold, optest.Parse(t, optest.Stepped))
	data, err := Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		snapshotOf
		want uint64
	}{
		"used":                 {snapshotOf{data, s.Last, true}, s.Last},
		"none":                 {snapshotOf{}, 0},
		"not the stream's":     {snapshotOf{data, s.Last, false}, 0},
		"of another operation": {snapshotOf{data, s.Last + 1, true}, 0},
		"torn":                 {snapshotOf{data[1:], 0, true}, 0},
	} {
		if got := FromSnapshot(tt); got.Last != tt.want {
			t.Errorf("%s: begins after op %d, want %d", name, got.Last, tt.want)
		}
	}
	for name, broken := range map[string]string{
		"no state":     `{}`,
		"no tree":      strings.Replace(string(data), `"Parent":0`, `"Parent":7`, 2),
		"sums missing": strings.Replace(string(data), `"Sums":[`, `"Sums":[1,`, 1),
	} {
		if _, err := Unmarshal([]byte(broken)); broken == string(data) || !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := optest.Fold(t, Fold, optest.Parse(t, optest.Stepped+"turn.ended 2 {}"))
	s.Todos, s.Calls.NeverStarts = []op.Todo{}, map[string]bool{}
	if !Holds(data, s) || Holds(data, other) || Holds(data[1:], s) {
		t.Errorf("the snapshot holds its state: %v, another: %v, torn: %v", Holds(data, s), Holds(data, other),
			Holds(data[1:], s))
	}
}

// TestTexts: operations, moments and amounts as users read them.
func TestTexts(t *testing.T) {
	for _, tt := range []struct {
		body op.Body
		want string
	}{
		{nil, "(a kind of operation this program does not know)"},
		{&op.OutputKept{Text: " whole\n"}, " whole\n"},
		{&op.UserSaid{Text: "go"}, "go"},
		{&op.CheckpointMarked{Checkpoint: 3, Call: "c"}, `{"checkpoint":3,"call":"c"}`},
	} {
		if got := OpText(op.Op{Body: tt.body}); got != tt.want {
			t.Errorf("%T: %q, want %q", tt.body, got, tt.want)
		}
	}
	now := time.Date(2030, 5, 6, 13, 0, 0, 0, time.Local)
	for after, want := range map[time.Duration]string{
		0: "13:00:00", 12*time.Hour - time.Second: "00:59:59", -12*time.Hour + time.Second: "01:00:01",
		12 * time.Hour: "2030-05-07 01:00", -12 * time.Hour: "2030-05-06 01:00",
	} {
		if got := Clock(now.Add(after), now); got != want {
			t.Errorf("%v later: %s, want %s", after, got, want)
		}
	}
	for usd, want := range map[float64]string{0.99: "$0.9900", 1: "$1.00", 0.00004: "$0.0000", 12.345: "$12.35"} {
		if got := Dollars(usd); got != want {
			t.Errorf("%v: %s, want %s", usd, got, want)
		}
	}
}
