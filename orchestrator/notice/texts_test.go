package notice

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
	"anamnesis/worldstate"
)

// says reports whether a text has all of some words, and none of those after a "!".
func says(text string, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool {
		w, not := strings.CutPrefix(w, "!")
		return strings.Contains(text, w) == not
	})
}

// TestChanged: the model is told whose a change is, as far as it is known, and of what kind.
func TestChanged(t *testing.T) {
	changes := []worldstate.Change{
		{Path: "n", Kind: worldstate.Added}, {Path: "m", Kind: worldstate.Mode},
		{Path: "d", Kind: worldstate.Deleted},
	}
	for _, tt := range []struct {
		by     string
		list   []worldstate.Change
		during bool
		want   []string
	}{
		{state.ChangedByUser, changes, true, []string{"while a call of yours ran. They are the user's", "New (1): n.", "Changed (1): m.", "Deleted (1): d."}},
		{state.ChangedByUser, changes[:1], false, []string{"while no call of yours ran. They are the user's", "New (1)", "!Changed (", "!Deleted"}},
		{state.ChangedUnknown, changes[:1], true, []string{"A call of yours may have changed"}},
		{state.ChangedUnknown, changes[2:], false, []string{"something ran in the background", "!New (", "Deleted (1): d."}},
	} {
		if got := Changed(tt.by, tt.list, tt.during); !says(got, tt.want...) {
			t.Errorf("by %s, during %v: %s", tt.by, tt.during, got)
		}
		if got := Changed(tt.by, nil, tt.during); got != "" {
			t.Errorf("no change by %s: %q", tt.by, got)
		}
	}
	for _, tt := range []struct {
		b    op.WorldRestored
		res  worldstate.Result
		want []string
	}{
		{op.WorldRestored{}, worldstate.Result{}, []string{"the directory's files back to the end of step 0", "!Changed back", "!Gone", "!Kept", "!Restored without"}},
		{op.WorldRestored{ToStep: -1, Paths: []string{"a"}}, worldstate.Result{Deleted: []string{"a"}}, []string{"brought a back to an older snapshot", "!Changed", "Gone: a."}},
		{op.WorldRestored{Interrupted: true}, worldstate.Result{Written: []string{"a"}}, []string{"it was interrupted", "Changed since: a.", "!Gone"}},
		{op.WorldRestored{Kept: []op.Skipped{{Path: "k"}}, LostAttributes: []op.Skipped{{Path: "l", Reason: "setuid"}}}, worldstate.Result{}, []string{"Kept as they were: k.", ": l (setuid)."}},
	} {
		if got := Restored(&tt.b, 5, tt.res); !says(got, tt.want...) {
			t.Errorf("%+v, %+v: %s", tt.b, tt.res, got)
		}
	}
}

// TestJumpSays: a jump's notice says what it knows and nothing else.
func TestJumpSays(t *testing.T) {
	changed := []worldstate.Change{{Path: "a", Kind: worldstate.Modified}}
	read := op.Op{Seq: 3, Body: &op.ToolReturned{Reads: []string{"a"}}}
	other := op.Op{Seq: 3, Body: &op.ToolReturned{Reads: []string{"b"}}}
	unobserved := op.Op{Seq: 4, Body: &op.WorldSaved{Unobserved: true}}
	for _, tt := range []struct {
		name    string
		jump    op.JumpIntended
		done    op.JumpDone
		changed []worldstate.Change
		ops     []op.Op
		want    []string
	}{
		{"nothing", op.JumpIntended{}, op.JumpDone{}, nil, nil, []string{
			"over", "No reason was given", "No file had to change", "!END OF", "!except", "!Left as", "!You had changed", "!Of these", "!removed these", "!entries", "!git repository", "!out of date", "!Outside"}},
		{"by the user", op.JumpIntended{By: op.ByUser, Backward: true}, op.JumpDone{}, nil, nil, []string{"back", "The user asked for it"}},
		{"by the agent", op.JumpIntended{By: op.ByAgent}, op.JumpDone{}, nil, nil, []string{"No reason was given"}},
		{"for a reason", op.JumpIntended{By: op.ByUser, Reason: "r"}, op.JumpDone{}, nil, nil, []string{"Reason: r", "!Learned", "!asked for"}},
		{"with a lesson", op.JumpIntended{Learned: "l", Reason: "r"}, op.JumpDone{}, nil, nil, []string{"Learned: l\nReason: r"}},
		{"what was read changed", op.JumpIntended{}, op.JumpDone{}, changed, []op.Op{read}, []string{"out of date", "You read these there, and the jump changed them: a."}},
		{"something else did", op.JumpIntended{}, op.JumpDone{}, changed, []op.Op{other}, []string{"out of date", "!the jump changed them"}},
		{"perhaps another program's", op.JumpIntended{}, op.JumpDone{}, changed, []op.Op{unobserved}, []string{"Whether another program changed"}},
		{"nothing of another program", op.JumpIntended{}, op.JumpDone{}, nil, []op.Op{unobserved}, []string{"!Whether another program"}},
		{"kept", op.JumpIntended{}, op.JumpDone{Kept: []op.Skipped{{Path: "k", Reason: "r"}}}, nil, nil, []string{"except for what is left", "Left as they are: k (r)."}},
		{"many kept", op.JumpIntended{}, op.JumpDone{NKept: 9, NConflicts: 2, Kept: []op.Skipped{{Path: "k", Reason: "r"}}}, nil, nil, []string{"k (r) and 6 more"}},
		{"a conflict", op.JumpIntended{}, op.JumpDone{Kept: []op.Skipped{{Path: "k"}}, Conflicts: []string{"k"}, NConflicts: 1}, nil, nil, []string{"!Left as they are", "the user's version stands: k."}},
		{"ignored ones", op.JumpIntended{}, op.JumpDone{Ignored: []string{"i"}, IgnoredGone: []string{"g"}, Unseen: true}, nil, nil, []string{"as they were left: i.", "do not come back: g.", "entries were looked at"}},
		{"git", op.JumpIntended{}, op.JumpDone{Git: []string{"moved"}}, nil, nil, []string{"git repository was not moved"}},
		{"git moved", op.JumpIntended{}, op.JumpDone{Git: []string{"moved"}, GitMoved: true}, nil, nil, []string{"The user moved git, too"}},
	} {
		if got := Jump("/w", tt.jump, &tt.done, tt.changed, tt.ops, nil, nil, "0"); !says(got, tt.want...) {
			t.Errorf("%s: %s", tt.name, got)
		}
	}
}

// TestOutline: an outline lists what steps did, and which of them a jump has left.
func TestOutline(t *testing.T) {
	s := &state.State{Current: 3}
	for id, st := range []steps.Step{
		{First: 1, Last: 4}, {Calls: []string{"Bash", "Bash"}, Failed: 1, LeftBy: "wrong"}, {}, {Calls: []string{"Bash"}}, {},
	} {
		st.ID, st.Ended = id, id < 4
		s.Steps.Add(st)
	}
	all := "| step 0 (ops 1-4), after step 0: the beginning\n" +
		"| step 1 (ops 0), after step 0: Bash, Bash (1 of 2 failed); left by a jump: wrong\n" +
		"| step 2 (ops 0), after step 0: an answer; left by a jump\n" +
		"| step 3 (ops 0), after step 0: Bash\n"
	for from, want := range map[int]string{-1: all, 0: all, 3: "| step 3 (ops 0), after step 0: Bash\n", 4: "there are no steps from 4 on", 9: "there are no steps from 9 on"} {
		if got := Outline(s, from); got != want {
			t.Errorf("from step %d:\n%swant\n%s", from, got, want)
		}
	}
	for id := 5; id < MaxOutlined+2; id++ {
		s.Steps.List[id-1].Ended = true
		s.Steps.Add(steps.Step{ID: id, Ended: true})
	}
	for from, want := range map[int]string{0: "and 2 more steps\n", 1: "and 1 more steps\n", 2: ""} {
		got := Outline(s, from)
		if rest := got[strings.LastIndex(got[:len(got)-1], "\n")+1:]; strings.HasPrefix(rest, "and") != (want != "") ||
			want != "" && rest != want {
			t.Errorf("from step %d ends with %q, want %q", from, rest, want)
		}
	}
}

// TestMaskLine: what replaces a result says how the call ended and how much it said.
func TestMaskLine(t *testing.T) {
	one := 1
	for _, tt := range []struct {
		r    op.ToolReturned
		want string
	}{
		{op.ToolReturned{Text: "ab"}, "Bash, 2 bytes ("},
		{op.ToolReturned{Text: strings.Repeat("x", 1023)}, "1023 bytes ("},
		{op.ToolReturned{Text: strings.Repeat("x", 1024)}, "1 KiB ("},
		{op.ToolReturned{Exit: &one, IsError: true}, "0 bytes, exit 1 ("},
		{op.ToolReturned{IsError: true}, ", error ("},
		{op.ToolReturned{IsError: true, Refused: true}, ", refused ("},
		{op.ToolReturned{IsError: true, Unknown: true}, ", outcome unknown ("},
	} {
		tt.r.Name = "Bash"
		if got := MaskLine(7, &tt.r); !says(got, "op 7: Bash, ", tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestLists: short lists are whole, long ones are cut, and nothing is said of none.
func TestLists(t *testing.T) {
	spec := func(name, about, schema string) model.ToolSpec {
		return model.ToolSpec{Name: name, Description: about, Schema: []byte(schema)}
	}
	before := []model.ToolSpec{spec("a", "1", "{}"), spec("b", "1", "{}"), spec("c", "1", "{}"), spec("d", "1", "{}")}
	after := []model.ToolSpec{spec("a", "1", "{}"), spec("b", "2", "{}"), spec("c", "1", "[]"), spec("e", "1", "{}")}
	if got := strings.Join(ToolChanges(before, after), " "); got != "New tools: e. Tools with another description: b, c. Tools that are gone: d." {
		t.Errorf("tools: %s", got)
	}
	if got := ToolChanges(before, before); len(got) != 0 {
		t.Errorf("the same tools: %q", got)
	}

	todos := []op.Todo{{Title: "write", Status: "done"}}
	if got := TodosNow(todos, todos); got != "" {
		t.Errorf("the same todos: %q", got)
	}
	if got := TodosNow(todos, nil); !says(got, "list is empty") {
		t.Errorf("no todos then: %q", got)
	}
	if got := TodosNow(nil, todos); !says(got, "as it was then:\n- ", "write") {
		t.Errorf("other todos then: %q", got)
	}

	if got := EndedSubagents(nil); got != "" {
		t.Errorf("no subagent ended: %q", got)
	}
	if got := EndedSubagents([]state.BegunSubagent{{Task: "t.1", Agent: "coder"}}); !says(got, "t.1 (coder)") {
		t.Errorf("a subagent ended: %q", got)
	}

	for n, want := range map[int]string{0: "", 1: "\n- x", maxNamed: strings.Repeat("\n- x", maxNamed), maxNamed + 2: strings.Repeat("\n- x", maxNamed) + "\n- and 2 more"} {
		var sb strings.Builder
		if WriteItems(&sb, strings.Fields(strings.Repeat("x ", n))); sb.String() != want {
			t.Errorf("%d items: %q", n, sb.String())
		}
		var l Ledger
		l.Delivered = strings.Fields(strings.Repeat("x ", n))
		if sb.Reset(); true {
			l.WriteDelivered(&sb)
		}
		if n == 0 && sb.Len() > 0 || !strings.HasSuffix(sb.String(), want) {
			t.Errorf("%d answers: %q", n, sb.String())
		}
	}
	for n, want := range map[int]int{0: 0, 2: 2, 3: 3, 4: 3} {
		if got := FirstN(make([]int, n), 3); len(got) != want || n > 3 && cap(got) != 3 {
			t.Errorf("the first 3 of %d: %d", n, len(got))
		}
	}

	changes := []worldstate.Change{{Path: "gone"}, {Path: "here", New: new(worldstate.Side)}}
	if got := fmt.Sprint(Deleted(changes), Paths(changes), len(changes)); got != "[gone] [gone here] 2" ||
		Deleted(nil) == nil {
		t.Errorf("deleted and changed: %s", got)
	}
	if got := WordsOf(nil, nil, "lead", countWords); got != "" {
		t.Errorf("no words: %q", got)
	}
	ops := []op.Op{
		{Seq: 1, Body: &op.UserSaid{}}, {Seq: 2, Body: &op.UserSaid{Text: "go", Source: "steer"}},
		{Seq: 3, Body: &op.ModelReplied{Text: "x"}},
	}
	if got := WordsOf(ops, nil, "lead", countWords); got != "lead\n- op 2 (steer): go" {
		t.Errorf("words: %q", got)
	}
}

// TestNewMarkWord: the word has only letters, and no two tasks the same.
func TestNewMarkWord(t *testing.T) {
	seen := make(map[string]bool)
	for range 50 {
		word := NewMarkWord()
		if len(word) != MarkWordLength ||
			strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLower(r) }) || seen[word] {
			t.Fatalf("%q after %d others", word, len(seen))
		}
		seen[word] = true
	}
	if got := Visible("a\u0100\u200e"); got != "a\u0100\\u200e" {
		t.Errorf("%q", got)
	}
}
