// Package gatetest makes what the checks of calls are tested with.
package gatetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
	"anamnesis/orchestrator/toolset"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// Place returns the place of a task whose model has just replied with some calls.
func Place(t *testing.T, opened op.TaskOpened, calls ...op.Call) *workspace.Place {
	t.Helper()
	opened.Task = "t"
	return Open(t, t.TempDir(), opened, &op.ModelReplied{Calls: calls})
}

// Open opens a task in the directory w of a home, and records operations behind the question to the
// model.
func Open(t *testing.T, root string, opened op.TaskOpened, bodies ...op.Body) *workspace.Place {
	t.Helper()
	return OpenTold(t, root, nil, opened, bodies...)
}

// OpenTold is Open, and tells event of each operation.
func OpenTold(t *testing.T, root string, event func(op.Op), opened op.TaskOpened, bodies ...op.Body) *workspace.Place {
	t.Helper()
	place := Empty(t, root, event, opened.Task)
	opened.Dir = place.Dir
	begun := []op.Body{&opened, &op.UserSaid{Text: "go", Source: op.SourceRequest}, &op.WorldSaved{},
		&op.ModelAsked{LastSeq: 3}}
	if err := place.Record(t.Context(), append(begun, bodies...)...); err != nil {
		t.Fatal(err)
	}
	return place
}

// Empty is OpenTold of a task without an operation.
func Empty(t *testing.T, root string, event func(op.Op), task string) *workspace.Place {
	t.Helper()
	h := taskdir.Home{User: root, State: root, Data: root, Config: root}
	dir := filepath.Join(root, "w")
	for _, d := range []string{dir, h.Task(task)} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	world, err := workspace.OpenDirectory(dir, filepath.Join(root, "store"), &worldstate.Options{Home: root})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = world.Close() })
	count, err := tokens.ForEncoding("r50k_base")
	if err != nil {
		t.Fatal(err)
	}
	jo := journal.Options{Count: count.Count, Learned: new(redact.Learned), Event: event}
	jo.Stream.Now = time.Now
	ledger, err := journal.OpenLedger(h, task, count, 0, jo)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ledger.Journal.Close() })
	return workspace.NewPlace(world, ledger, workspace.Options{})
}

// Tools returns the set of some tools.
func Tools(t *testing.T, tools ...tool.Tool) *toolset.Set {
	t.Helper()
	own, err := tool.NewRegistry(tools...)
	if err != nil {
		t.Fatal(err)
	}
	set, err := toolset.New(toolset.Options{Own: own, Count: func(string) int { return 1 }})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// Call returns a call of one of some tools, with valid arguments.
func Call(t *testing.T, tools *toolset.Set, oc op.Call) *gate.Call {
	t.Helper()
	c := &gate.Call{Call: oc, Env: new(tool.Env)}
	var err error
	if c.Tool, c.Input, err = tools.Registry.Validate(oc); err != nil {
		t.Fatal(err)
	}
	c.Spec = tool.SpecOf(c.Tool, c.Input)
	return c
}
