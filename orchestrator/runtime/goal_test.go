package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
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
	for _, bad := range []int{1, 2, 10, 11, steps} {
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
		p.answers = append(p.answers, model.Reply{
			Finish: "tool_calls",
			Calls: []op.Call{
				{ID: fmt.Sprint("c", i), Name: "WriteFile", Args: fmt.Sprintf(`{"path":%q,"content":%q}`, name, text)},
			},
		})
	}
	p.answers = append(p.answers, says("Done."), model.Reply{
		Finish: "tool_calls",
		Calls:  []op.Call{{ID: "last", Name: "WriteFile", Args: `{"path":"lib","content":"good"}`}},
	}, says("Mended."))
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
	if len(broke) != 1 || broke[0].Step != bad || broke[0].Good != bad-1 ||
		!slices.Equal(broke[0].Changed, []string{"lib"}) || broke[0].Probes > 5 {
		t.Errorf("%+v; want step %d of %d in 5 probes", broke, bad, steps)
	}
	for _, gone := range []string{filepath.Join(h.Task("t"), "check", "earlier"), filepath.Join(h.Task("t"), "check", "scratch"), filepath.Join(task.Place.Dir, "deps", "two")} {
		if _, err := os.Lstat(gone); err == nil {
			t.Errorf("%s is left", gone)
		}
	}
}
