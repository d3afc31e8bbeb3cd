package anamnesis

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/note"
	"anamnesis/opstream/op"
)

// TestSuccesses: the latest come first; of calls that differ only in numbers all but the latest few come
// after everything else, and what failed, only looked or was run before is left out.
func TestSuccesses(t *testing.T) {
	s := newSpan(7, 1)
	early := s.bash("make build", 0, "built\n", "")
	var runs []uint64
	for i := range maxLikeSuccess + 2 {
		runs = append(runs, s.bash(fmt.Sprint("./run ", i), 0, "", ""))
	}
	s.bash("make test", 2, "", "failed\n")
	s.bash("ls", 0, "a\n", "")
	s.write("a", "b")
	again := s.bash("make check", 0, "", "")
	last := s.bash("make check", 0, "", "")
	r := s.request(4000)
	var got []uint64
	for _, statement := range successes(records(&r)) {
		got = append(got, statement.Ops...)
	}
	slices.Reverse(runs)
	want := append([]uint64{last}, runs[:maxLikeSuccess]...)
	want = append(append(want, early), runs[maxLikeSuccess:]...)
	if !slices.Equal(got, want) {
		t.Errorf("operations %d, want %d; the first run of the last one is %d", got, want, again)
	}
}

// TestSuccessesBounded: of many calls the latest are kept, whether or not they are alike.
func TestSuccessesBounded(t *testing.T) {
	for name, command := range map[string]func(i int) string{
		"unlike": func(i int) string { return "./run " + strings.Repeat("x", i+1) },
		"alike":  func(i int) string { return fmt.Sprint("./run ", i) },
	} {
		s := newSpan(7, 1)
		var calls []uint64
		for i := range maxExtracted + 1 {
			calls = append(calls, s.bash(command(i), 0, "", ""))
		}
		r := s.request(4000)
		got := successes(records(&r))
		if len(got) != maxExtracted || got[0].Ops[0] != calls[maxExtracted] || got[maxExtracted-1].Ops[0] != calls[1] {
			t.Errorf("%s: %d of %d: %+v", name, len(got), len(calls), got)
		}
	}
}

// TestUnsettled: calls that were refused or whose outcome is unknown are listed; a jump of unknown outcome is not.
func TestUnsettled(t *testing.T) {
	recs := []*record{
		{kind: recCall, end: 2, tool: "Bash", args: `{"command":"make"}`, refused: true},
		{kind: recCall, end: 4, tool: "Bash", args: `{"command":"curl h"}`, unknown: true},
		{kind: recCall, end: 6, tool: "jump_to_step", args: `{"step_id":1}`, unknown: true},
		{kind: recCall, end: 8, tool: "Bash", args: `{"command":"ls"}`},
	}
	got := unsettled(recs)
	if len(got) != 2 || got[0].Ops[0] != 2 || !strings.Contains(got[0].Text, "refused") ||
		got[1].Ops[0] != 4 || !strings.Contains(got[1].Text, "outcome unknown") {
		t.Errorf("%+v", got)
	}
}

// TestCallSummary: the main argument that has a text names a call, with the others unless it is a command.
func TestCallSummary(t *testing.T) {
	for args, want := range map[string]string{
		`{"command":"make","timeout":5}`: "make",
		`{"command":"","path":"a"}`: "a " +
			otherArgs(map[string]json.RawMessage{"command": json.RawMessage(`""`)}, "path"),
		`{"path":7,"query":"q"}`: "q " + otherArgs(map[string]json.RawMessage{"path": json.RawMessage(`7`)}, "query"),
		`{"path":"a"}`:           "a",
		`not JSON`:               "not JSON",
		`{}`:                     "{}",
		`{"n":1}`:                `{"n":1}`,
		`null`:                   "null",
	} {
		if got := callSummary(args); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// TestOvercome: a command that failed in several ways and then succeeded is one finding, with the last error; what did
// not run again stays a falsified path.
func TestOvercome(t *testing.T) {
	s := newSpan(7, 1)
	run := func(command, printed string) uint64 { return s.bash(command, 2, "", printed) }
	var ops []uint64
	ops = append(ops, run("make", "error: no lexer\n"), run("make", "error: no lexer\n"),
		run("make", "error: no parser\n"))
	first := run("make check", "error: no tests\n")
	run("make dist", "error: no tar\n")
	run("make check", "error: no runner\n")
	last := run("make check", "error: no runner\n")
	run("make late", "error: too late\n")
	ops = append(ops, s.bash("make", 0, "", ""))
	s.bash("make late", 0, "", "")
	run("make late", "error: later still\n")
	s.bash("make check", 0, "", "")
	r := s.request(4000)
	paths, overcome := falsifiedPaths(records(&r))
	var got []string
	for _, o := range overcome {
		got = append(got, o.Text)
	}
	slices.Sort(got)
	const state = "after step 2"
	want := []string{
		"Bash: make check failed 3 times, at last " + state + ", with “error: no runner”, and succeeded later " + state,
		"Bash: make failed 3 times, at last " + state + ", with “error: no parser”, and succeeded later " + state,
		"Bash: make late failed " + state + ", with “error: too late”, and succeeded later " + state,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, o := range overcome {
		if strings.Contains(o.Text, "make failed") && !slices.Equal(o.Ops, ops) ||
			strings.Contains(o.Text, "check") && (o.Ops[0] != first || o.Ops[2] != last) {
			t.Errorf("%s: %d", o.Text, o.Ops)
		}
	}
	if len(paths) != 2 || paths[0].Action != "Bash: make late" || paths[1].Action != "Bash: make dist" {
		t.Errorf("falsified: %+v", paths)
	}
}

// TestFalsifiedOrder: commands come before other tools, errors with a message before silent ones, and repeated before
// single ones.
func TestFalsifiedOrder(t *testing.T) {
	s := newSpan(7, 1)
	s.bash("make one", 2, "", "error: no rule\n")
	s.bash("make two", 2, "", "error: no lexer\n")
	s.bash("make two", 2, "", "error: no lexer\n")
	s.call("ReadFile", `{"path":"a"}`, op.ToolReturned{Text: "error: a is a folder", IsError: true})
	s.bash("make silent", 3, "", "")
	s.bash("./other", 4, "", "")
	r := s.request(4000)
	paths, _ := falsifiedPaths(records(&r))
	var got []string
	for _, p := range paths {
		got = append(got, p.Action+": "+p.Why)
	}
	want := []string{
		"Bash: make two: exit code 2, 2 times", "Bash: make one: exit code 2",
		"Bash: ./other: exit code 4, nothing printed",
		"Bash: make silent: exit code 3, nothing printed", "ReadFile: a: the tool reported an error",
	}
	if slices.Sort(got[2:]); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if causes := repeatedErrors(paths); len(causes) > 0 {
		t.Errorf("what printed nothing has one cause: %+v", causes)
	}
	for _, e := range []string{"x", "y"} {
		for i := range 3 {
			paths = append(paths, note.Falsified{Action: fmt.Sprint(e, i), Error: e, Ops: []uint64{uint64(i + 1)}})
		}
	}
	if causes := repeatedErrors(paths); len(causes) != 2 ||
		causes[0].Text != "3 different actions met the same error: x" || len(causes[1].Ops) != 3 {
		t.Errorf("%+v", causes)
	}
}

// TestStates: a falsified path names the states in which it failed, of many the first and the last, and the place
// where it failed if the error does not.
func TestStates(t *testing.T) {
	for n := 1; n < 6; n++ {
		s := newSpan(7, 3)
		var states []string
		for i := range n {
			s.bash("python a.py", 1, "",
				"Traceback (most recent call last):\n  File \"a.py\", line 3, in f\n    g()\nValueError: no unit\n")
			s.save(fmt.Sprint(i), fmt.Sprint("f", i))
			states = append(states, fmt.Sprint("f", i))
		}
		r := s.request(4000)
		paths, _ := falsifiedPaths(records(&r))
		got := strings.Split(paths[0].State, "; ")
		last := "after step 2"
		if n > 1 {
			last = fmt.Sprintf("after step %d: ", n+1)
		}
		if len(paths) != 1 || len(got) != min(n, 3) || got[0] != "after step 2" ||
			!strings.HasPrefix(got[len(got)-1], last) ||
			strings.Contains(paths[0].State, " more;") != (n > 3) || n > 3 && got[1] != fmt.Sprint(n-2, " more") {
			t.Errorf("%d states: %q", n, got)
		}
		if !strings.Contains(got[len(got)-1], states[max(0, n-2)]) && n > 1 ||
			!strings.Contains(paths[0].Why, "exit code 1 at a.py:3") {
			t.Errorf("%+v", paths[0])
		}
	}
	s := newSpan(7, 3)
	s.save("1", "a", "b", "c", "d")
	s.bash("make", 2, "", "error: no rule\n")
	s.save("2", "e")
	s.bash("make all", 2, "", "error: no lexer\n")
	r := s.request(4000)
	recs := records(&r)
	if got := recs[0].state + "|" +
		recs[1].state; got != "after step 3: d, c, b, a edited|after step 4: e, d, c, b and 1 more edited" {
		t.Error(got)
	}
}

// TestAgentNotes: the agent's last words and its first are quoted, thoughts among them, but not the reason again.
func TestAgentNotes(t *testing.T) {
	for said, want := range map[string]string{
		"A": "noted: A", "A B": "noted: B|noted: A", "A B C": "noted: C|noted: B|noted: A",
		"A B C D":    "noted: D|noted: C|began: A",
		"A reason B": "noted: B|noted: A",
	} {
		s := newSpan(7, 1)
		for word := range strings.FieldsSeq(said) {
			s.say(word)
		}
		r := s.request(4000)
		var got []string
		for _, n := range agentNotes(records(&r), "for this reason") {
			got = append(got, strings.TrimPrefix(n.Text, "the agent "))
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s: %q", said, got)
		}
	}
	s := newSpan(7, 1)
	thought := s.call("Think", `{"thought":"it is the cache"}`, op.ToolReturned{Text: "ok"}) - 1
	s.call("Think", `{"thought":"refused"}`, op.ToolReturned{Refused: true})
	s.call("Grep", `{"pattern":"cache"}`, op.ToolReturned{Text: "ok"})
	r := s.request(4000)
	if got := agentNotes(records(&r), ""); len(got) != 1 || got[0].Text != "the agent noted: it is the cache" ||
		got[0].Ops[0] != thought {
		t.Errorf("%+v", got)
	}
}

// TestUnsettledBounded: a call without a result has an unknown outcome, and of many such calls the first are listed.
func TestUnsettledBounded(t *testing.T) {
	s := newSpan(7, 1)
	for i := range maxExtracted + 1 {
		s.add(&op.ToolCalled{Call: fmt.Sprint(i), Name: "Bash", Args: `{"command":"make"}`})
	}
	r := s.request(4000)
	if got := unsettled(records(&r)); len(got) != maxExtracted ||
		got[0].Text != "outcome unknown, it may have had its effect: Bash: make" || got[0].Ops[0] != 7 {
		t.Errorf("%d: %+v", len(got), got)
	}
}

// TestHints: advice is quoted of commands that ran, not of files that were read.
func TestHints(t *testing.T) {
	s := newSpan(7, 1)
	s.bash("make", 0, "hint: try -j\nfine\n", "")
	s.read("a.md", "hint: of a file\n")
	s.call("Bash", `{"command":"make b"}`, op.ToolReturned{Text: "hint: of a refusal", Refused: true})
	r := s.request(4000)
	if got := hints(records(&r)); len(got) != 1 || got[0].Text != "Bash: make printed: hint: try -j" {
		t.Errorf("%+v", got)
	}
}

// TestForgedBlock: only blocks of passes hand on falsified paths, not outputs that look like one.
func TestForgedBlock(t *testing.T) {
	block := pass(t, nil, story().request(16000), nil).Block
	s := newSpan(60, 6)
	s.bash("cat block.txt", 0, block, "")
	if got := pass(t, nil, s.request(16000), nil); len(got.Notes.Falsified) > 0 {
		t.Errorf("%+v", got.Notes.Falsified)
	}
}

// TestTodos: the list that was set last stands in the block, and rests on the operation that set it.
func TestTodos(t *testing.T) {
	s := newSpan(7, 1)
	set := func(titles ...string) uint64 {
		b := &op.TodosSet{}
		for _, title := range titles {
			b.Todos = append(b.Todos, op.Todo{Title: title})
		}
		return s.add(b)
	}
	if got := lastTodos(s.ops); got != nil {
		t.Errorf("without a list: %+v", got)
	}
	set("a")
	last := set("b", "c")
	s.say("done")
	if got := lastTodos(s.ops); len(got) != 2 || !strings.HasSuffix(got[0].Text, "b") || got[0].Ops[0] != last ||
		got[1].Ops != nil {
		t.Errorf("%+v", got)
	}
	set()
	if got := lastTodos(s.ops); len(got) != 0 {
		t.Errorf("of an empty list: %+v", got)
	}
}
