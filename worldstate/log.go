//go:build unix

package worldstate

import (
	"bytes"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/worldstate/internal/gc"
	"anamnesis/worldstate/internal/gitfmt"
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
	Trailers [][2]string `json:"trailers,omitempty"` // the caller's own
	// Current marks the snapshot this world was last known at.
	Current bool `json:"current"`
	// Missing: a ref or a snapshot names this one, and it is lost or damaged, for
	// this reason. Of the other fields only ID, Steps and Current say something.
	Missing string `json:"missing,omitempty"`
}

// Log lists the snapshots of this World's task and directory, or of all tasks, the
// newest first; a parent never comes before its child.
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
	commits, err := w.history(ctx, byName, func(ref string) bool {
		return ref == refs.WorldPrefix+w.key || strings.HasPrefix(ref, task) || w.opts.AllTasks && refs.IsStep(ref)
	})
	if err != nil {
		return nil, err
	}
	steps := w.stepNames(byName)
	out := make([]Commit, 0, len(commits))
	for _, c := range commits {
		out = append(out, w.listed(c, steps[c.Id], byName[refs.WorldPrefix+w.key]))
	}
	return out, nil
}

// stepNames returns the steps of this World's task, or of all tasks, that refs name,
// by snapshot.
func (w *World) stepNames(byName map[string]gitfmt.Hash) map[gitfmt.Hash][]string {
	steps := make(map[gitfmt.Hash][]string)
	for ref, h := range byName {
		if step := w.stepName(refs.Step(ref)); step != "" {
			steps[h] = append(steps[h], step)
		}
	}
	return steps
}

// stepName returns how TASK@STEP is listed: by STEP alone if only one task's are, and
// not at all if it is another's.
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

// listed is the public form of a commit.
func (w *World) listed(c *gitfmt.Commit, steps []string, current gitfmt.Hash) Commit {
	if step := w.stepName(c.Step); step != "" && !slices.Contains(steps, step) {
		steps = append(slices.Clone(steps), step)
	}
	slices.Sort(steps)
	item := Commit{
		ID: ID(c.Id.String()), Tree: c.Tree.String(), Parents: []ID{}, Time: c.Time, Message: c.Message,
		Steps: steps, Complete: !c.Partial, Skipped: c.Skips, Trailers: c.Trailers, Current: current == c.Id,
	}
	for _, p := range c.Parents {
		item.Parents = append(item.Parents, ID(p.String()))
	}
	if c.Missing != nil {
		item.Tree, item.Complete, item.Missing = "", false, whyMissing(item.ID, c.Missing)
	}
	if item.Steps == nil {
		item.Steps = []string{}
	}
	if item.Skipped == nil {
		item.Skipped = []Skip{}
	}
	return item
}

// history returns the commits that the chosen refs reach, children before parents,
// the newest first where that leaves a choice. One that cannot be read has only its id
// and Missing. What came before it is found by the steps that the store's snapshots
// name.
func (w *World) history(ctx context.Context, byName map[string]gitfmt.Hash, chosen func(ref string) bool) ([]*gitfmt.Commit, error) {
	all := make(map[gitfmt.Hash]*gitfmt.Commit)
	children := make(map[gitfmt.Hash]int)
	var queue []gitfmt.Hash
	for ref, h := range byName {
		ok, err := chosen(ref), error(nil)
		if ok && !refs.IsOurs(ref) {
			named := h
			h, ok, err = gc.FollowTags(w.objects, h, ref)
			if errors.Is(err, gitfmt.ErrCorrupt) { // what is not theirs can be read all the same
				all[named], err = &gitfmt.Commit{Id: named, Missing: gc.BrokenRef(w.objects, ref, err)}, nil
			}
		}
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		if ok {
			queue = append(queue, h)
		}
	}
	for searched := false; len(queue) > 0; {
		h := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if all[h] != nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := w.objects.Commit(h)
		if errors.Is(err, gitfmt.ErrCorrupt) {
			c, err = &gitfmt.Commit{Id: h, Missing: err}, nil
			if !searched {
				searched = true
				queue = append(queue, w.stepped(chosen)...)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("log: %w", err)
		}
		all[h] = c
		for _, p := range c.Parents {
			children[p]++
			queue = append(queue, p)
		}
	}
	var ready commitHeap
	for h, c := range all {
		if children[h] == 0 {
			ready = append(ready, c)
		}
	}
	heap.Init(&ready)
	out := make([]*gitfmt.Commit, 0, len(all))
	for len(ready) > 0 {
		c := heap.Pop(&ready).(*gitfmt.Commit)
		out = append(out, c)
		for _, p := range c.Parents {
			if children[p]--; children[p] == 0 {
				heap.Push(&ready, all[p])
			}
		}
	}
	return out, nil
}

// stepped returns the snapshots in our packs that were saved as steps whose refs are
// chosen.
func (w *World) stepped(chosen func(ref string) bool) []gitfmt.Hash {
	var found []gitfmt.Hash
	for _, h := range w.objects.Commits() {
		if c, err := w.objects.Commit(h); err == nil && c.Step != "" && chosen(refs.OfStep(c.Step)) {
			found = append(found, h)
		}
	}
	return found
}

// commitHeap is a heap of commits, the newest first; of equal times the smaller id.
type commitHeap []*gitfmt.Commit

func (q commitHeap) Len() int      { return len(q) }
func (q commitHeap) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q commitHeap) Less(i, j int) bool {
	if !q[i].Time.Equal(q[j].Time) {
		return q[i].Time.After(q[j].Time)
	}
	return bytes.Compare(q[i].Id[:], q[j].Id[:]) < 0
}

func (q *commitHeap) Push(c any) { *q = append(*q, c.(*gitfmt.Commit)) }

func (q *commitHeap) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}
