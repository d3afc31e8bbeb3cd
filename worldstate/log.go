package worldstate

import (
	"context"
	"slices"
	"strings"
	"time"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/history"
	"anamnesis/worldstate/internal/refs"
)

// A Commit is one snapshot as Log lists it.
type Commit struct {
	ID       ID          `json:"id"`
	Tree     string      `json:"tree"`
	Parents  []ID        `json:"parents"`
	Time     time.Time   `json:"time"` // UTC, whole seconds
	Message  string      `json:"message"`
	Steps    []string    `json:"steps"` // names of this task's refs to it; with Options.AllTasks TASK@STEP
	Complete bool        `json:"complete"`
	Skipped  []Skip      `json:"skipped"`
	Trailers [][2]string `json:"trailers,omitempty"` // those of SaveOptions
	// Current marks the snapshot that this world was last known at.
	Current bool `json:"current"`
	// Missing is why the snapshot is lost or damaged, although a ref or another snapshot names
	// it. Of the other fields only ID, Steps and Current are then valid.
	Missing string `json:"missing,omitempty"`
}

// Log returns the snapshots of this World's task and directory, or of all tasks, newest first;
// a parent never precedes its child.
func (w *World) Log(ctx context.Context) ([]Commit, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return nil, err
	}
	defer end()
	byName, err := w.refs.All()
	if err != nil {
		return nil, err
	}
	task := refs.TaskPrefix + w.opts.Task + "/"
	commits, err := history.Log(ctx, w.objects, byName, func(ref string) bool {
		return ref == refs.WorldPrefix+w.key || strings.HasPrefix(ref, task) || w.opts.AllTasks && refs.IsStep(ref)
	})
	if err != nil {
		return nil, err
	}
	steps := w.stepNames(byName)
	out := make([]Commit, 0, len(commits))
	for _, c := range commits {
		out = append(out, w.listed(c, steps[c.Id], w.headOf(byName)))
	}
	return out, nil
}

// stepNames returns, by snapshot, the steps that refs name, of this World's task or of all
// tasks.
func (w *World) stepNames(byName map[string]gitfmt.Hash) map[gitfmt.Hash][]string {
	steps := make(map[gitfmt.Hash][]string)
	for ref, h := range byName {
		if step := w.stepName(refs.Step(ref)); step != "" {
			steps[h] = append(steps[h], step)
		}
	}
	return steps
}

// stepName returns TASK@STEP as Log lists it: STEP alone if only one task is listed, and "" for
// a step of another task.
func (w *World) stepName(step string) string {
	if w.opts.AllTasks {
		return step
	}
	step, own := strings.CutPrefix(step, w.opts.Task+"@")
	if !own {
		return ""
	}
	return step
}

func (w *World) listed(c *gitfmt.Commit, steps []string, current gitfmt.Hash) Commit {
	steps = append([]string{}, steps...)
	if step := w.stepName(c.Step); step != "" && !slices.Contains(steps, step) {
		steps = append(steps, step)
	}
	slices.Sort(steps)
	item := Commit{
		ID: ID(c.Id.String()), Tree: c.Tree.String(), Parents: []ID{}, Time: c.Time, Message: c.Message,
		Steps: steps, Complete: !c.Partial, Skipped: append([]Skip{}, c.Skips...), Trailers: c.Trailers,
		Current: current == c.Id,
	}
	for _, p := range c.Parents {
		item.Parents = append(item.Parents, ID(p.String()))
	}
	if c.Missing != nil {
		item.Tree, item.Complete, item.Missing = "", false, whyMissing(item.ID, c.Missing)
	}
	return item
}
