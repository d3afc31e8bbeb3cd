package goal

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
)

// Limits of the search for what broke a check.
const (
	searchTime = 5 * time.Minute
	maxProbes  = 8
	maxError   = 300 // bytes of why it stopped
	maxBeneath = 64  // directories that no snapshot holds
	maxDeep    = 4   // how deep they are looked for
)

// whatBroke searches the steps since the check last passed for the first one after which it fails: by
// halves, in copies of their snapshots, without the model. nil: it had not passed before this run.
func (c *Checker) whatBroke(ctx context.Context, rec *op.CheckRan) (*op.Broke, error) {
	st := c.place.State()
	i := slices.IndexFunc(rec.Checks, op.Check.Failed)
	if rec.Passed || i < 0 || len(st.Goal.Runs) == 0 {
		return nil, nil
	}
	last := st.Goal.Runs[len(st.Goal.Runs)-1]
	if !last.Passed || !st.Steps.OnPath(last.Step, st.Current) {
		return nil, nil
	}
	b := &op.Broke{Good: last.Step, Step: st.Current, Text: rec.Checks[i].Line}
	b.Unfinished = "the limit of time or runs is reached"
	steps := changing(st, last.Step) // the first of them that fails is searched
	begun := c.place.Now()
	for len(steps) > 1 && b.Probes < maxProbes && c.place.Now().Sub(begun) < searchTime && rec.InWorld == "" {
		half := (len(steps) - 1) / 2
		if c.shows != nil {
			text := fmt.Sprintf("looking for the step that broke it: %d are left, run %d", len(steps), b.Probes+1)
			c.shows(op.Call{Name: "the check"}, text)
		}
		passes, err := c.passesAt(ctx, rec.Checks[i].Command, steps[half])
		if ctx.Err() != nil {
			return nil, nil
		}
		if err != nil { // the record says what is known by now
			b.Unfinished = quote.OneLine(err.Error(), maxError)
			break
		}
		if b.Probes++; passes {
			b.Good, steps = steps[half], steps[half+1:]
		} else {
			b.Step, steps = steps[half], steps[:half+1]
		}
	}
	if len(steps) == 1 {
		b.Step, b.Unfinished = steps[0], ""
	}
	var err error
	b.Changed, err = c.changedBetween(ctx, b.Good, b.Step)
	b.Changed = b.Changed[:min(len(b.Changed), maxChanged)]
	return b, err
}

// changing returns the steps of the path after a step, whose files differ from those of the step before.
func changing(st *state.State, after int) (steps []int) {
	at := st.Steps.At(after).World
	for _, id := range st.Steps.Path(st.Current) {
		if step := st.Steps.At(id); id > after && step.Saved && step.World != at {
			at = step.World
			steps = append(steps, id)
		}
	}
	return steps
}

func (c *Checker) passesAt(ctx context.Context, command string, step int) (bool, error) {
	commit, err := c.place.CommitAt(step)
	if err != nil {
		return false, err
	}
	dir := filepath.Join(c.folder(), "earlier")
	if err := removeAll(dir); err != nil {
		return false, fmt.Errorf("remove the copy of an earlier check: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return false, err
	}
	defer removeAll(dir) // what is left is removed by the next check
	if _, err := c.place.World.Fork(ctx, commit, dir); err != nil {
		return false, err
	}
	ran, err := c.run(ctx, command, dir, searchTime)
	if err == nil && ran.inWorld != "" && ctx.Err() == nil {
		return false, fmt.Errorf("run the check on step %d: %s", step, ran.inWorld)
	}
	return !ran.Failed(), err
}

// changedBetween lists the files that differ between two steps.
func (c *Checker) changedBetween(ctx context.Context, from, to int) ([]string, error) {
	a, err := c.place.CommitAt(from)
	if err != nil {
		return nil, err
	}
	b, err := c.place.CommitAt(to)
	if err != nil || a == "" || b == "" {
		return nil, err
	}
	changes, err := c.place.World.Diff(ctx, a, b)
	return notice.Paths(changes), err
}

// beneath lists the directories of the world that a copy of its snapshot lacks, such as node_modules.
func beneath(world, fork, rel string) (list []string) {
	entries, err := os.ReadDir(filepath.Join(world, rel))
	if err != nil || strings.Count(rel, "/") >= maxDeep {
		return nil
	}
	for _, e := range entries {
		name := filepath.Join(rel, e.Name())
		if !e.IsDir() {
			continue
		}
		if _, err := os.Lstat(filepath.Join(fork, name)); err != nil {
			list = append(list, name)
		} else {
			list = append(list, beneath(world, fork, name)...)
		}
	}
	return list[:min(len(list), maxBeneath)]
}

// firstLine returns the line of a failed check that says what fails.
func firstLine(k op.Check) string {
	if len(k.Names) > 0 {
		return k.Names[0]
	}
	f, _ := failure.Read(failure.Output{Command: k.Command, Text: k.Text, Exit: k.Exit, HasExit: true})
	if line := strings.Trim(cmp.Or(f.Line, f.Signature), "[]"); line != "" && !f.Silent {
		return line
	}
	return fmt.Sprintf("exit code %d", k.Exit)
}

// brokeWords says which step broke the check.
func brokeWords(b *op.Broke) string {
	text := "The check of the goal " + b.String()
	if b.Text != "" {
		text += ". What fails: " + b.Text
	}
	return text + "."
}
