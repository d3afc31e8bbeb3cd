package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/goal"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
)

// slowly makes the goal's checks count as slow, so that none runs between two requests.
type slowly struct {
	*provider
	task *Task
}

func (s *slowly) Ask(ctx context.Context, r model.Request, on func(model.Delta)) (model.Reply, error) {
	for i := range s.task.Ledger.State().Goal.Runs {
		s.task.Ledger.State().Goal.Runs[i].Fast = false
	}
	return s.provider.Ask(ctx, r, on)
}

// TestWhatBroke: the step that broke a slow check is found by halves, in copies of the snapshots that see what no
// snapshot holds, and nothing is left of them.
func TestWhatBroke(t *testing.T) {
	const steps = 20
	for bad := 1; bad <= steps; bad++ {
		t.Run(fmt.Sprint(bad), func(t *testing.T) {
			t.Parallel()
			plantRegression(t, steps, bad)
		})
	}
}

func plantRegression(t *testing.T, steps, bad int) {
	task, h := newTask(t, "turns:\n  - reply: x\n", Options{})
	write := func(path, text string) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(task.Place.Dir, ".gitignore"), "deps/\n")
	write(filepath.Join(task.Place.Dir, "deps", "one"), "x")
	task.Ledger.State().Goal.Until = []string{"test -e deps/one && touch deps/two && ! grep -q bad lib"}
	p := &provider{}
	for i := 1; i <= steps; i++ {
		name, text := fmt.Sprintf("f%d", i), "x"
		if i == bad {
			name, text = "lib", "bad"
		}
		p.answers = append(p.answers, model.Reply{Finish: "tool_calls", Calls: []op.Call{{ID: fmt.Sprint("c", i), Name: "WriteFile", Args: fmt.Sprintf(`{"path":%q,"content":%q}`, name, text)}}})
	}
	p.answers = append(p.answers, says("Done."), model.Reply{Finish: "tool_calls", Calls: []op.Call{{ID: "last", Name: "WriteFile", Args: `{"path":"lib","content":"good"}`}}}, says("Mended."))
	task.opts.Model = &slowly{p, task}
	out, err := task.Run(t.Context())
	if err != nil || out.Reason != "done" || out.Answer != "Mended." {
		t.Fatalf("%+v, %v", out, err)
	}
	ops, err := task.Ledger.Ops(op.Range{First: 1, Last: task.Ledger.State().Last})
	if err != nil {
		t.Fatal(err)
	}
	var broke []*op.Broke
	for _, o := range ops {
		if b, ok := o.Body.(*op.CheckRan); ok && b.Broke != nil {
			broke = append(broke, b.Broke)
		}
	}
	if len(broke) != 1 || broke[0].Step != bad || broke[0].Good != bad-1 || !slices.Equal(broke[0].Changed, []string{"lib"}) || broke[0].Probes > 5 {
		t.Errorf("%+v; want step %d of %d in 5 probes", broke, bad, steps)
	}
	for _, gone := range []string{filepath.Join(h.Task("t"), "check", "earlier"), filepath.Join(h.Task("t"), "check", "scratch"), filepath.Join(task.Place.Dir, "deps", "two")} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
}

// TestCheckSays: what one run of the goal's checks records.
func TestCheckSays(t *testing.T) {
	task, _ := newTask(t, "turns:\n  - reply: x\n", Options{})
	task.opts.Model = &provider{answers: []any{
		model.Reply{Finish: "tool_calls", Calls: []op.Call{{ID: "a", Name: "WriteFile", Args: `{"path":"lib","content":"x"}`}}},
		model.Reply{Finish: "tool_calls", Calls: []op.Call{{ID: "b", Name: "WriteFile", Args: `{"path":"tests/t.sh","content":"printf '=== 1 failed, 2 passed in 0.1s ===\\n'; exit 1"}`}}},
		says("Done."),
	}}
	if _, err := task.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := task.Ledger.State()
	check := func(ctx context.Context, asked bool, set func(g *state.Goal)) *op.CheckRan {
		t.Helper()
		st.Goal = state.Goal{}
		set(&st.Goal)
		before := st.Last
		if err := task.features.goal.Run(ctx, t.Context(), asked, time.Minute); err != nil {
			t.Fatal(err)
		}
		if st.Last == before {
			return nil
		}
		o, err := task.Ledger.Op(st.Last)
		if err != nil {
			t.Fatal(err)
		}
		return o.Body.(*op.CheckRan)
	}
	until := func(commands ...string) func(g *state.Goal) {
		return func(g *state.Goal) { g.Until = commands }
	}
	frozen := func(commands ...string) func(g *state.Goal) {
		return func(g *state.Goal) { g.Until, g.Frozen = commands, true }
	}
	score := func(command string) func(g *state.Goal) {
		return func(g *state.Goal) { g.Until, g.Score = []string{"true"}, command }
	}
	again := func(passed bool, step int, command string) func(g *state.Goal) {
		return func(g *state.Goal) {
			g.Until = []string{command}
			g.Runs = []state.GoalRun{{Step: step, Passed: passed, World: st.Steps.At(step).World}}
		}
	}
	for _, tt := range []struct {
		name string
		set  func(g *state.Goal)
		want string
	}{
		{"passes", until("test -e lib"), "passed true, first true, exits 0, rating 1 of 1, changed [lib tests/t.sh]"},
		{"fails", until("exit 3"), "passed false, first true, exits 3 (exit code 3), rating 0 of 1, changed [tests/t.sh]"},
		{"the first fails", until("false", "true"), "passed false, first true, exits 1 (exit code 1) 0, rating 1 of 2, changed [tests/t.sh]"},
		{"the last fails", until("true", "false"), "passed false, first true, exits 0 1 (exit code 1), rating 1 of 2, changed [tests/t.sh]"},
		{"tests", until("sh tests/t.sh"), "passed false, first true, exits 1 (exit code 1), rating 2 of 3, changed [tests/t.sh]"},
		{"frozen", frozen("true"), "passed false, first true, exits 0, rating 0 of 1, changed [tests/t.sh], refused"},
		{"changed before", func(g *state.Goal) { g.Until, g.Changed = []string{"true"}, []string{"tests/t.sh"} }, "passed true, first true, exits 0, rating 1 of 1, changed []"},
		{"changed before, and frozen", func(g *state.Goal) { g.Until, g.Frozen, g.Changed = []string{"true"}, true, []string{"tests/t.sh"} },
			"passed false, first true, exits 0, rating 0 of 1, changed [], refused"},
		{"a score", score("echo 7; echo about 2.5"), "passed true, first true, exits 0, rating 2.5 of 0, changed [tests/t.sh]"},
		{"no number", score("echo none"), "passed true, first true, exits 0, rating 0 of 0 (`echo none` printed no number), changed [tests/t.sh]"},
		{"a score that fails", score("echo 3; exit 1"), "passed true, first true, exits 0, rating 0 of 0 (`echo 3; exit 1` failed: exit code 1), changed [tests/t.sh]"},
		{"a score of what is refused", func(g *state.Goal) { g.Until, g.Score, g.Frozen = []string{"true"}, "echo 3", true }, "passed false, first true, exits 0, rating 0 of 1, changed [tests/t.sh], refused"},
		{"a later run", again(false, 1, "true"), "passed true, first false, exits 0, rating 1 of 1, changed [tests/t.sh]"},
		{"it broke", again(true, 0, "! test -e lib"), "passed false, first false, exits 1 (exit code 1), rating 0 of 1, changed [lib tests/t.sh], broke after 0 in 1 [lib]"},
		{"it broke in the last step", again(true, 1, "! test -e tests"), "passed false, first false, exits 1 (exit code 1), rating 0 of 1, changed [tests/t.sh], broke after 1 in 2 [tests/t.sh]"},
		{"it had not passed", again(false, 1, "false"), "passed false, first false, exits 1 (exit code 1), rating 0 of 1, changed [tests/t.sh]"},
		{"it passes again", again(true, 1, "true"), "passed true, first false, exits 0, rating 1 of 1, changed [tests/t.sh]"},
	} {
		b := check(t.Context(), true, tt.set)
		got := fmt.Sprintf("passed %v, first %v, exits", b.Passed, b.First)
		for _, c := range b.Checks {
			if got += fmt.Sprint(" ", c.Exit); c.Line != "" {
				got += " (" + c.Line + ")"
			}
		}
		got += fmt.Sprintf(", rating %v of %d", b.Rating.Value, b.Rating.Of)
		if b.Rating.Error != "" {
			got += " (" + b.Rating.Error + ")"
		}
		if got += fmt.Sprintf(", changed %v", b.Changed); b.Refused {
			got += ", refused"
		}
		if b.Broke != nil {
			got += fmt.Sprintf(", broke after %d in %d %v", b.Broke.Good, b.Broke.Step, b.Broke.Changed)
		}
		if got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.name, got, tt.want)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if b := check(ended, true, until("true")); b != nil {
		t.Errorf("an interrupted check is recorded: %+v", b)
	}
	if b := check(t.Context(), false, until("true")); b.Asked || check(t.Context(), true, until("true")).Asked != true {
		t.Errorf("whether it was asked for: %+v", b)
	}

	off := task.features.goal
	task.features.goal = goal.New(task.Place, func(context.Context) (*guard.Sandbox, error) { return nil, nil }, func(op.Call, string) {})
	defer func() { task.features.goal = off }()
	if b := check(t.Context(), true, until("true")); b.InWorld != "the sandbox is off" || !b.Passed {
		t.Errorf("without a sandbox: %+v", b)
	}
	if b := check(t.Context(), true, func(g *state.Goal) { g.Until, g.InWorld = []string{"true"}, "the sandbox is off" }); b.InWorld != "" {
		t.Errorf("without a sandbox, the second time: %+v", b)
	}
	if b := check(t.Context(), true, again(true, 0, "! test -e lib")); b.Broke == nil || b.Broke.Probes != 0 || b.Broke.Unfinished == "" || b.Broke.Step != st.Current {
		t.Errorf("what broke without a sandbox: %+v", b.Broke)
	}
	if b := check(t.Context(), true, again(true, 1, "! test -e tests")); b.Broke == nil || b.Broke.Unfinished != "" || b.Broke.Step != 2 {
		t.Errorf("what broke in one step, without a sandbox: %+v", b.Broke)
	}
}
