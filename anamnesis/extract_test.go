package anamnesis

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
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
		`{"command":"","path":"a"}`:      "a " + otherArgs(map[string]json.RawMessage{"command": json.RawMessage(`""`)}, "path"),
		`{"path":7,"query":"q"}`:         "q " + otherArgs(map[string]json.RawMessage{"path": json.RawMessage(`7`)}, "query"),
		`{"path":"a"}`:                   "a",
		`not JSON`:                       "not JSON",
	} {
		if got := callSummary(args); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}
