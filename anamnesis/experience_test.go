package anamnesis

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
)

func TestIsCheck(t *testing.T) {
	for command, want := range map[string]bool{
		"go test ./...": true, "cd sub && go vet .": true, "pytest -q tests": true, ".venv/bin/pytest": true, "python3 -m unittest": true, "npm test": true, "npm run test:unit": true,
		"make check": true, "cargo test --all": true, "go test ./... 2>&1": true,
		"go test ./... | tail -5": false, "go test || true": false, "go test; echo done": false, "go run .": false, "ls": false, "": false,
		"echo go test": false, "$(go test)": false, "make": false, "npm install": false, "go test &": false,
	} {
		if got := IsCheck(command); got != want {
			t.Errorf("IsCheck(%q) = %v", command, got)
		}
	}
}

func TestExperience(t *testing.T) {
	var e Experience
	seq := uint64(0)
	add := func(b op.Body) {
		seq++
		e.Add(&op.Op{Seq: seq, Body: b})
	}
	run := func(id, command string, exit int) {
		args, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		add(&op.ToolCalled{Call: id, Name: bashTool, Args: string(args)})
		add(&op.ToolReturned{Call: id, Name: bashTool, Exit: &exit})
	}
	add(&op.CardsRecalled{Why: "start", Cards: []op.CardRef{{ID: "k1"}, {ID: "k2"}}})
	if e.Ending() != usage.Unknown || len(e.Events("t", e.Ending(), false)) != 2 {
		t.Errorf("without a check: %v, %+v", e.Ending(), e.Events("t", e.Ending(), false))
	}
	run("1", "go test ./...", 1)
	run("2", "ls", 0)
	add(&op.CardsRecalled{Why: "asked", Cards: []op.CardRef{{ID: "k1"}}})
	if e.Ending() != usage.Bad {
		t.Errorf("after a failed test and an ls: %v", e.Ending())
	}
	run("3", "go test ./...", 0)
	var got []string
	for _, ev := range e.Events("t", e.Ending(), false) {
		got = append(got, fmt.Sprint(ev.Card, " ", ev.What, " ", ev.Op, ev.Ending))
	}
	want := []string{"k1 shown 1", "k1 outcome 0good", "k2 shown 1", "k2 outcome 0good", "k1 shown 6", "k1 used 6"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if last := e.Events("t", usage.Unknown, true); last[1].What != usage.Outcome || !last[1].Person {
		t.Errorf("a person who takes a verdict back says so: %+v", last)
	}
}
