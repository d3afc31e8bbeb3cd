package goal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate/gatetest"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/workspace"
)

func TestMain(m *testing.M) {
	guard.SuperviseMain() // this binary also supervises commands
	os.Exit(m.Run())
}

// save ends a step that wrote a file, if one is given: a script of tests of which one fails.
func save(t *testing.T, place *workspace.Place, step int, file string) {
	t.Helper()
	if file != "" {
		path := filepath.Join(place.Dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("printf '=== 1 failed, 2 passed in 0.1s ===\\n'; exit 1"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	snap, err := place.SeeNow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range []op.Body{&op.ModelReplied{}, &op.WorldSaved{Parent: max(step-1, 0), Commit: string(snap.ID), Tree: snap.Tree}, &op.ModelAsked{}} {
		if err := place.Record(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
}

// TestCheckSays: what one run of the goal's checks records.
func TestCheckSays(t *testing.T) {
	place := gatetest.Empty(t, t.TempDir(), nil, "t")
	if err := place.Record(t.Context(), &op.TaskOpened{Task: "t", Dir: place.Dir}, &op.UserSaid{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	for i, file := range []string{"", "lib", "tests/t.sh"} {
		save(t, place, i, file)
	}
	box, err := guard.NewSandbox(t.Context(),
		guard.SandboxOptions{World: place.Dir, Cache: t.TempDir(), Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	checker := New(place, func(context.Context) (*guard.Sandbox, error) { return box, nil }, nil)
	st := place.State()
	check := func(ctx context.Context, asked bool, set func(g *state.Goal)) *op.CheckRan {
		t.Helper()
		st.Goal = state.Goal{}
		set(&st.Goal)
		before := st.Last
		if err := checker.Run(ctx, t.Context(), asked, time.Minute); err != nil {
			t.Fatal(err)
		}
		if st.Last == before {
			return nil
		}
		o, err := place.Ledger.Op(st.Last)
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
		{"packages of tests", until("touch x; printf 'ok  \\tm/a\\t0.01s\\nok  \\tm/b\\t0.02s\\n'"), "passed true, first true, exits 0, rating 2 of 2, changed [tests/t.sh]"},
		{"frozen, after it passed", func(g *state.Goal) { again(true, 0, "true")(g); g.Frozen = true }, "passed false, first false, exits 0, rating 0 of 1, changed [tests/t.sh], refused"},
		{"after several runs", func(g *state.Goal) {
			again(false, 0, "! test -e lib")(g)
			g.Runs = append(g.Runs, state.GoalRun{Step: 0, Passed: true})
		},
			"passed false, first false, exits 1 (exit code 1), rating 0 of 1, changed [lib tests/t.sh], broke after 0 in 1 [lib]"},
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
	b := check(t.Context(), true, until("touch x"))
	if _, err := os.Lstat(filepath.Join(place.Dir, "x")); err == nil || b.InWorld != "" {
		t.Errorf("a check ran in the directory: %v, %q", err, b.InWorld)
	}
	if b := check(t.Context(), true, until("pytest() { touch x; }; pytest")); b.Checks[0].Status != "" || !b.Passed {
		t.Errorf("a run that says nothing of tests: %+v", b.Checks)
	}
	scoring, stop := context.WithCancel(t.Context())
	interrupting := New(place, func(context.Context) (*guard.Sandbox, error) {
		if len(st.Goal.Runs) == 1 { // the score is about to run
			stop()
		}
		st.Goal.Runs = append(st.Goal.Runs, state.GoalRun{})
		return box, nil
	}, nil)
	whole := checker
	checker = interrupting
	if b := check(scoring, true, score("echo 1")); b != nil {
		t.Errorf("a check whose score was interrupted is recorded: %+v", b)
	}
	checker = whole
	ended, end := context.WithCancel(t.Context())
	end()
	if b := check(ended, true, until("true")); b != nil {
		t.Errorf("an interrupted check is recorded: %+v", b)
	}
	if b := check(t.Context(), false, until("true")); b.Asked || check(t.Context(), true, until("true")).Asked != true {
		t.Errorf("whether it was asked for: %+v", b)
	}

	checker = New(place, func(context.Context) (*guard.Sandbox, error) { return nil, nil }, func(op.Call, string) {})
	if b := check(t.Context(), true, until("true")); b.InWorld != "the sandbox is off" || !b.Passed {
		t.Errorf("without a sandbox: %+v", b)
	}
	if b := check(t.Context(), true, func(g *state.Goal) { g.Until, g.InWorld = []string{"true"}, "the sandbox is off" }); b.InWorld != "" {
		t.Errorf("without a sandbox, the second time: %+v", b)
	}
	if b := check(t.Context(), true, again(true, 0, "! test -e lib")); b.Broke == nil || b.Broke.Probes != 0 ||
		b.Broke.Unfinished == "" || b.Broke.Step != st.Current {
		t.Errorf("what broke without a sandbox: %+v", b.Broke)
	}
	if b := check(t.Context(), true, again(true, 1, "! test -e tests")); b.Broke == nil || b.Broke.Unfinished != "" ||
		b.Broke.Step != 2 {
		t.Errorf("what broke in one step, without a sandbox: %+v", b.Broke)
	}
}

// TestSearch: the step that broke a check is found by halves, on the path that the task took.
func TestSearch(t *testing.T) {
	place := gatetest.Empty(t, t.TempDir(), nil, "t")
	if err := place.Record(t.Context(), &op.TaskOpened{Task: "t", Dir: place.Dir}, &op.UserSaid{Text: "go"}); err != nil {
		t.Fatal(err)
	}
	const steps = 5
	for path, text := range map[string]string{".gitignore": "deps/\n", "deps/one": "x"} { // no snapshot has deps
		if err := os.MkdirAll(filepath.Join(place.Dir, filepath.Dir(path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(place.Dir, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(t, place, 0, "")
	for i := 1; i <= steps; i++ {
		save(t, place, i, fmt.Sprint("f", i))
	}
	box, err := guard.NewSandbox(t.Context(),
		guard.SandboxOptions{World: place.Dir, Cache: t.TempDir(), Temp: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	checker := New(place, func(context.Context) (*guard.Sandbox, error) { return box, nil },
		func(_ op.Call, text string) { shown = append(shown, text) })
	broke := func(command string, last state.GoalRun) *op.Broke {
		t.Helper()
		place.State().Goal = state.Goal{Runs: []state.GoalRun{last}}
		place.State().Goal.Until = []string{"true", command}
		if err := checker.Run(t.Context(), t.Context(), true, time.Minute); err != nil {
			t.Fatal(err)
		}
		o, err := place.Ledger.Op(place.State().Last)
		if err != nil {
			t.Fatal(err)
		}
		return o.Body.(*op.CheckRan).Broke
	}
	for bad := 1; bad <= steps; bad++ {
		b := broke(fmt.Sprint("test -e deps/one && ! test -e f", bad), state.GoalRun{Passed: true})
		if b == nil || b.Step != bad || b.Good != bad-1 || b.Probes > 3 || b.Unfinished != "" ||
			fmt.Sprint(b.Changed) != fmt.Sprintf("[f%d]", bad) {
			t.Errorf("step %d broke it: %+v", bad, b)
		}
	}
	if len(shown) == 0 || shown[0] != "looking for the step that broke it: 5 are left, run 1" {
		t.Errorf("shown meanwhile: %q", shown)
	}
	if err := place.Record(t.Context(), &op.JumpDone{From: steps, To: 2, Backward: true}); err != nil {
		t.Fatal(err)
	}
	if b := broke("false", state.GoalRun{Step: 3, Passed: true}); b != nil {
		t.Errorf("it passed on a path that was left: %+v", b)
	}
	if b := broke("false", state.GoalRun{Step: 2, Passed: true}); b == nil {
		t.Error("it passed where the task is")
	}

	// What does not change the files of its task is not frozen.
	place.State().Goal = state.Goal{}
	place.State().Goal.Until, place.State().Goal.Frozen = []string{"true"}, true
	if err := checker.Run(t.Context(), t.Context(), true, time.Minute); err != nil {
		t.Fatal(err)
	}
	if o, err := place.Ledger.Op(place.State().Last); err != nil || !o.Body.(*op.CheckRan).Passed {
		t.Errorf("a frozen check whose files did not change: %+v, %v", o.Body, err)
	}

	// Without a snapshot of the beginning nothing is known to have changed.
	place = gatetest.Open(t, t.TempDir(), op.TaskOpened{Task: "u"})
	save(t, place, 1, "tests/t.sh")
	place.State().Goal.Until = []string{"true"}
	if err := New(place, func(context.Context) (*guard.Sandbox, error) { return nil, nil }, nil).Run(t.Context(), t.Context(), true, time.Minute); err != nil {
		t.Fatal(err)
	}
	if o, err := place.Ledger.Op(place.State().Last); err != nil || len(o.Body.(*op.CheckRan).Changed) > 0 {
		t.Errorf("without a snapshot of the beginning: %+v, %v", o.Body, err)
	}
}
