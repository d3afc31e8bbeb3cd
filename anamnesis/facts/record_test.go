package facts

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"anamnesis/opstream/op"
)

// TestRecord counts a task from its operations: what was refused or has an unknown end says nothing, a time
// limit stands in the text, and after a change of files no test fails by itself.
func TestRecord(t *testing.T) {
	exit := func(n int) *int { return &n }
	const failing = "FAILED tests/a.py::test_a - x\n1 failed in 0.1s"
	var r Record
	for i, b := range []op.Body{
		&op.TaskOpened{Task: "t", Dir: "/w/app", Model: "m", Origin: &op.Origin{Agent: "codex"}},
		&op.ToolCalled{Call: "1", Name: "Bash", Args: `{"command":"cd ../web && pytest"}`},
		&op.ToolReturned{Call: "1", Name: "Bash", Text: failing, Exit: exit(1), IsError: true},
		&op.ToolCalled{Call: "2", Name: "Bash", Args: `{"command":"make all"}`},
		&op.ToolReturned{
			Call: "2", Name: "Bash",
			Text: "cc a.c\n[timed out after 2m0s: the command and everything it had started were ended]",
			Exit: exit(-1), IsError: true,
		},
		&op.ToolCalled{Call: "3", Name: "Bash", Args: `{"command":"make none"}`},
		&op.ToolReturned{Call: "3", Name: "Bash", Text: "Not run: a rule", Refused: true, IsError: true},
		&op.ToolCalled{Call: "4", Name: "Bash", Args: `{"command":"make unknown"}`},
		&op.ToolReturned{Call: "4", Name: "Bash", Unknown: true},
		&op.ToolReturned{Call: "5", Name: "WriteFile", Writes: []string{"a.py"}},
		&op.ToolCalled{Call: "6", Name: "Bash", Args: `{"command":"pytest -x"}`},
		&op.ToolReturned{
			Call: "6", Name: "Bash", Text: "FAILED tests/b.py::test_b - y\n1 failed in 0.1s", Exit: exit(1),
			IsError: true,
		},
	} {
		r.Add(&op.Op{Seq: uint64(i + 1), Step: 1, Body: b})
	}
	got, any := r.Task("/w")
	if !any || got.ID != "t" || got.Agent != "codex" || len(got.Commands) != 3 || len(got.Failed) != 2 ||
		len(got.Before) != 1 {
		t.Fatalf("%+v", got)
	}
	if c := got.Commands[0]; c.Words != "pytest" || c.Ends != "r" || c.Dir != "web" {
		t.Errorf("%+v", c)
	}
	if c := got.Commands[1]; c.Words != "make all" || c.Dir != "app" || c.Ends != "t" || !c.Limit {
		t.Errorf("%+v", c)
	}
	if _, any := new(Record).Task("/w"); any {
		t.Error("an empty task shows something")
	}
}

// TestRecordEnds counts what operations beside a call's result say: when the task ended, by whom, where and on what,
// what it installed, and from when its files may have been changed.
func TestRecordEnds(t *testing.T) {
	exit, hour := 0, func(h int) time.Time { return time.Date(2026, 11, 20, h, 0, 0, 0, time.UTC) }
	opened := func(o *op.Origin) op.Body { return &op.TaskOpened{Task: "t", Dir: "/w/app", Model: "m", Origin: o} }
	ran := func(tool, command, text string) []op.Body {
		return []op.Body{&op.ToolCalled{Call: "1", Name: tool, Args: `{"command":"` + command + `"}`},
			&op.ToolReturned{Call: "1", Name: tool, Text: text, Exit: &exit}}
	}
	const failing = "FAILED tests/a.py::test_a - x\n1 failed in 0.1s"
	for _, tt := range []struct {
		name   string
		ops    []op.Body
		want   string // agent, hour of the end, environment, commands and where they ran, tests that failed before
		empty  bool
		setups bool
	}{
		{"a command", append(ran("Bash", "make all", "platform Python 3.9.1"), ran("Bash", "make it", "fine")...),
			"m 3 linux Python 3.9 [make all@app make it@app] []", false, false},
		{"elsewhere", ran("Bash", "cd /srv && make all", ""), "m 3 linux [make all@/srv] []", false, false},
		{"at the top", ran("Bash", "cd .. && make all", ""), "m 3 linux [make all@] []", false, false},
		{"above it", ran("Bash", "cd ../.. && make all", ""), "m 3 linux [make all@/] []", false, false},
		{"another tool", ran("Search", "make all", ""), "m 3 linux [] []", true, false},
		{"no command", ran("Bash", "", ""), "m 3 linux [] []", true, false},
		{"a program alone", ran("Bash", "ls", ""), "m 3 linux [] []", false, false},
		{"an imported session", append([]op.Body{opened(&op.Origin{Agent: "codex", Began: hour(1)})},
			ran("Bash", "make all", "")...), "codex 1 linux [make all@app] []", false, false},
		{"installed", ran("Bash", "npm ci", ""), "m 3 linux [npm ci@app] []", false, true},
		{"a failing test", ran("Bash", "pytest", failing), "m 3 linux [pytest@app] [tests/a.py::test_a]", false, false},
		{"saved unchanged", append([]op.Body{&op.WorldSaved{}}, ran("Bash", "pytest", failing)...),
			"m 3 linux [pytest@app] [tests/a.py::test_a]", false, false},
		{"saved changed", append([]op.Body{&op.WorldSaved{NChanged: 1}}, ran("Bash", "pytest", failing)...),
			"m 3 linux [pytest@app] []", false, false},
	} {
		var r Record
		for i, b := range append([]op.Body{opened(nil)}, tt.ops...) {
			at := hour(2)
			if i > 0 {
				at = hour(3)
			}
			r.Add(&op.Op{Seq: uint64(i + 1), Time: at, Step: 1, Body: b})
		}
		r.Add(&op.Op{Seq: 99, Body: &op.WorldSaved{}})
		got, any := r.Task("/w")
		var commands []string
		for _, c := range got.Commands {
			commands = append(commands, c.Words+"@"+c.Dir)
		}
		env := strings.Replace(got.Env, runtime.GOOS, "linux", 1)
		if s := fmt.Sprint(got.Agent, " ", got.Ended.Hour(), " ", env, " ", commands, " ", got.Before); s != tt.want ||
			any == tt.empty || r.Installed() != tt.setups {
			t.Errorf("%s: %v %v\ngot  %s\nwant %s", tt.name, any, r.Installed(), s, tt.want)
		}
	}
	var r Record // what was there before the first step is no change of the task
	for i, b := range append([]op.Body{&op.WorldSaved{NChanged: 9}}, ran("Bash", "pytest", failing)...) {
		r.Add(&op.Op{Seq: uint64(i + 1), Step: min(i, 1), Body: b})
	}
	if got, _ := r.Task("/w"); len(got.Before) != 1 {
		t.Errorf("failed before any change: %q", got.Before)
	}
}
