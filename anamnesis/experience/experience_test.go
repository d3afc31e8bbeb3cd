package experience

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"anamnesis/anamnesis/testrun"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
)

func TestExperience(t *testing.T) {
	var e Log
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
		add(&op.ToolCalled{Call: id, Name: "Bash", Args: string(args)})
		out := map[int]string{0: "ok  \tx\t0.1s\n", 1: "--- FAIL: TestA (0.00s)\nFAIL\tx\t0.1s\n"}[exit]
		add(&op.ToolReturned{Call: id, Name: "Bash", Exit: &exit, Stdout: out})
	}
	add(&op.CardsRecalled{Why: "start", Cards: []op.CardRef{{ID: "k1"}, {ID: "k2"}}})
	run("1", "go test ./...", 1)
	run("2", "ls", 0)
	add(&op.CardsRecalled{Why: "asked", Cards: []op.CardRef{{ID: "k1"}}})
	if e.Check.Command != "go test ./..." || !slices.Equal(e.Check.Names, []string{"TestA"}) {
		t.Errorf("the last test run is %+v", e.Check)
	}
	run("3", "go test ./... | tail -1", 0)
	if e.Check.Status != testrun.Passed {
		t.Errorf("after a test run that passed: %+v", e.Check)
	}
	var got []string
	for _, ev := range e.Events("t", "") {
		got = append(got, fmt.Sprint(ev.Card, " ", ev.What, " ", ev.Op, ev.Ending))
	}
	// that the task ended well says nothing of its cards
	want := []string{"k1 shown 1", "k2 shown 1", "k1 shown 6", "k1 used 6"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
	if last := e.Events("t", usage.Unknown); last[1].What != usage.Outcome || !last[1].Person {
		t.Errorf("a person who takes a verdict back says so: %+v", last)
	}
}

// TestFindings: what a task's calls say of the cards it was shown, by the stream alone.
func TestFindings(t *testing.T) {
	const e1 = "undefined: clockwork"
	failsOnly := op.CardRef{ID: "k", Error: e1, Check: "go test ./...", World: "tree1"}
	nowhere := op.CardRef{ID: "k", Error: e1, Check: "go test ./..."}
	repair := op.CardRef{ID: "k", Error: e1, Check: "go test ./...", Tries: []string{"go mod tidy", "clock.go"}}
	type call struct {
		command, world string
		exit           int
	}
	fail, pass := call{"go test ./...", "tree1", 1}, call{"go test ./...", "tree1", 0}
	for name, tt := range map[string]struct {
		ref   op.CardRef
		calls []call
		says  string
		want  string
	}{
		"shown only":                         {ref: failsOnly, want: ""},
		"it fails again":                     {failsOnly, []call{fail}, "", "followed held"},
		"it passes in that state":            {failsOnly, []call{pass}, "", "followed contradicted"},
		"it passes in another state":         {failsOnly, []call{{"go test ./...", "tree2", 0}}, "", ""},
		"it passes, and no state was named":  {nowhere, []call{{"go test ./...", "tree2", 0}}, "", "followed contradicted"},
		"it fails, and again":                {failsOnly, []call{fail, fail}, "", "followed held"},
		"it fails, and then passes":          {failsOnly, []call{fail, pass}, "", "followed held contradicted"},
		"it fails without the repair":        {repair, []call{fail}, "", ""},
		"the repair works":                   {repair, []call{{"go mod tidy", "", 0}, pass}, "", "followed held"},
		"the repair does not":                {repair, []call{{"go mod tidy", "", 0}, fail}, "", "followed contradicted"},
		"it does not, before a filter":       {repair, []call{{"go mod tidy", "", 0}, {"go test ./... | tail -2", "", 0}}, "", "followed contradicted"},
		"it passes without the repair":       {repair, []call{pass}, "", ""},
		"the agent says so, and ran nothing": {repair, nil, "lesson k does not hold", ""},
		"the agent says so":                  {repair, []call{{"ls", "", 0}}, "So lesson k does not hold.", "contradicted"},
		"of another card":                    {repair, []call{{"ls", "", 0}}, "lesson j does not hold", ""},
	} {
		var e Log
		seq := uint64(0)
		add := func(b op.Body) {
			seq++
			e.Add(&op.Op{Seq: seq, Body: b})
		}
		add(&op.CardsRecalled{Why: "start", Cards: []op.CardRef{tt.ref}})
		add(&op.WorldSaved{Changed: []string{"clock.go"}}) // the first snapshot lists every file
		for _, c := range tt.calls {
			args, err := json.Marshal(map[string]string{"command": c.command})
			if err != nil {
				t.Fatal(err)
			}
			out := ""
			if c.exit != 0 || strings.Contains(c.command, "|") {
				out = "./a.go:3:2: " + e1 + "\nFAIL\n"
			}
			add(&op.ToolCalled{Call: "c", Name: "Bash", Args: string(args), World: c.world})
			add(&op.ToolReturned{Call: "c", Name: "Bash", Exit: &c.exit, Stdout: out})
		}
		add(&op.ModelReplied{Text: tt.says})
		var got []string
		for _, ev := range e.Events("t", "") {
			if ev.What != usage.Shown {
				got = append(got, string(ev.What))
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestFindingsOfEachCard: each card gets its findings, each once; calls of other tools and calls whose exit
// code is not known show nothing.
func TestFindingsOfEachCard(t *testing.T) {
	var e Log
	seq := uint64(0)
	add := func(b op.Body) {
		seq++
		e.Add(&op.Op{Seq: seq, Body: b})
	}
	run := func(name string, exit *int) {
		add(&op.ToolCalled{Call: "c", Name: name, Args: `{"command":"go mod tidy"}`})
		add(&op.ToolReturned{Call: "c", Name: name, Exit: exit})
	}
	add(&op.CardsRecalled{
		Why:   "start",
		Cards: []op.CardRef{{ID: "a", Tries: []string{"go mod tidy"}}, {ID: "b", Tries: []string{"go mod tidy"}}},
	})
	ok := 0
	run("ReadFile", &ok)
	run("Bash", nil)
	if len(e.Findings) != 0 {
		t.Errorf("found %+v", e.Findings)
	}
	run("Bash", &ok)
	run("Bash", &ok)
	if want := []Finding{{"a", usage.Followed, 7}, {"b", usage.Followed, 7}}; !slices.Equal(e.Findings, want) {
		t.Errorf("found %+v, want %+v", e.Findings, want)
	}
}

// TestFindingsBeforeShown: a command that began before the card was shown says nothing of it.
func TestFindingsBeforeShown(t *testing.T) {
	for shown, want := range map[int]int{0: 1, 1: 0} { // before the call, or while it runs
		var e Log
		exit := 0
		ops := []op.Body{&op.ToolCalled{Call: "c", Name: "Bash", Args: `{"command":"go mod tidy"}`},
			&op.ToolReturned{Call: "c", Name: "Bash", Exit: &exit}}
		card := op.Body(&op.CardsRecalled{Why: "start", Cards: []op.CardRef{{ID: "a", Tries: []string{"go mod tidy"}}}})
		for i, b := range slices.Insert(ops, shown, card) {
			e.Add(&op.Op{Seq: uint64(i + 1), Body: b})
		}
		if len(e.Findings) != want {
			t.Errorf("shown before operation %d: %+v", shown+1, e.Findings)
		}
	}
}
