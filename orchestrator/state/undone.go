package state

import (
	"maps"
	"slices"
	"strconv"

	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state/steps"
)

// ByUndoneGuard decided that a call did not run, since a jump has undone it. A call is held
// back once: the same call again runs.
const ByUndoneGuard = "guard:undone"

// ByNeverStarts decided that a call did not run, since facts of the repository say that it never starts. Subjects
// names the fact, by which no later call is held.
const ByNeverStarts = "guard:never starts"

const (
	maxUndone       = 256 // calls remembered; beyond, those of the oldest step are forgotten
	maxUndoneReason = 300 // bytes of a jump's reason that are quoted
)

// Undone is a call that began a path the agent left by a jump back. It is identified by the
// call and the state of the files.
type Undone struct {
	Step   int    // in which it ran
	Seq    uint64 // of its result
	Reason string // the jump's
}

// began records a call that may have changed the world, for a jump that leaves its step.
func began(st *steps.Step, c *CallState, seq uint64) {
	if c.World != "" && c.Changes {
		st.Began = append(st.Began, steps.Began{Key: undoneKey(steps.MarkOf(c.World), c.Name, c.Args), Seq: seq})
	}
}

// Calls is what guards know of the calls that were made.
type Calls struct {
	Last    *model.Past
	Repeats loop.Tally  // by the world they ran in
	Streak  loop.Streak // the last call, and how often it was made in a row since the user spoke
	// Undone are the first world-changing calls of abandoned paths, by world, tool and
	// arguments.
	Undone map[loop.Key]Undone `json:",omitempty"`
	// NeverStarts are the facts of the repository by which a call was held once.
	NeverStarts map[string]bool `json:",omitempty"`
}

// undo records which calls a jump has undone that discards some steps: those of the first step
// that changed the world. Later calls ran in states that recur only along the same path.
func (c *Calls) undo(tree *steps.Tree, discarded []int, reason string) {
	for _, id := range discarded {
		st := tree.At(id)
		for _, b := range st.Began {
			c.Undone = put(c.Undone, b.Key,
				Undone{Step: id, Seq: b.Seq, Reason: reason[:min(len(reason), maxUndoneReason)]})
		}
		if len(st.Began) > 0 {
			break
		}
	}
	for len(c.Undone) > maxUndone {
		oldest := tree.Len()
		for _, u := range c.Undone {
			oldest = min(oldest, u.Step)
		}
		c.forget(func(_ loop.Key, u Undone) bool { return u.Step == oldest })
	}
}

// redo forgets undone calls whose step is on the path again.
func (c *Calls) redo(tree *steps.Tree, current int) {
	on := tree.PathSet(current)
	c.forget(func(_ loop.Key, u Undone) bool { return on[u.Step] })
}

func (c *Calls) forget(gone func(loop.Key, Undone) bool) {
	maps.DeleteFunc(c.Undone, gone)
	if len(c.Undone) == 0 {
		c.Undone = nil
	}
}

// heldOnce records that the model was shown an undone call: the next time it runs.
func (c *Calls) heldOnce(world steps.Mark, open []CallState, id string) {
	if i := slices.IndexFunc(open, func(c CallState) bool { return c.ID == id }); i >= 0 {
		held := undoneKey(world, open[i].Name, open[i].Args)
		c.forget(func(k loop.Key, _ Undone) bool { return k == held })
	}
}

// UndoneCall reports whether a jump has undone the same call in the same state of the files.
func (c *Calls) UndoneCall(call loop.Call) (Undone, bool) {
	u, ok := c.Undone[undoneKey(steps.MarkOf(call.World), call.Tool, call.Args)]
	return u, ok
}

func undoneKey(world steps.Mark, tool, args string) loop.Key {
	return loop.KeyOf(strconv.FormatUint(uint64(world), 16), tool, args)
}
