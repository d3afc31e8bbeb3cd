package facts

import (
	"testing"

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
		&op.ToolReturned{Call: "2", Name: "Bash", Text: "cc a.c\n[timed out after 2m0s: the command and everything it had started were ended]", Exit: exit(-1), IsError: true},
		&op.ToolCalled{Call: "3", Name: "Bash", Args: `{"command":"make none"}`},
		&op.ToolReturned{Call: "3", Name: "Bash", Text: "Not run: a rule", Refused: true, IsError: true},
		&op.ToolCalled{Call: "4", Name: "Bash", Args: `{"command":"make unknown"}`},
		&op.ToolReturned{Call: "4", Name: "Bash", Unknown: true},
		&op.ToolReturned{Call: "5", Name: "WriteFile", Writes: []string{"a.py"}},
		&op.ToolCalled{Call: "6", Name: "Bash", Args: `{"command":"pytest -x"}`},
		&op.ToolReturned{Call: "6", Name: "Bash", Text: "FAILED tests/b.py::test_b - y\n1 failed in 0.1s", Exit: exit(1), IsError: true},
	} {
		r.Add(&op.Op{Seq: uint64(i + 1), Step: 1, Body: b})
	}
	got, any := r.Task("/w")
	if !any || got.ID != "t" || got.Agent != "codex" || len(got.Commands) != 3 || len(got.Failed) != 2 || len(got.Before) != 1 {
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
