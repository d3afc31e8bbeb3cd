// Package steps is the tree of a task's steps, in which a jump back begins a new branch. It
// depends on nothing but its arguments.
package steps

import (
	"crypto/sha256"
	"encoding/binary"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// Step is one turn of the loop: ask, run tools, save the world.
type Step struct {
	ID     int
	Parent int
	First  uint64 // seq of its first operation
	Last   uint64 // seq of its last operation so far
	Ended  bool   `json:",omitempty"` // its world.saved was recorded
	// Saved: it has a checkpoint, whose commit and tree are in operation Last.
	Saved        bool      `json:",omitempty"`
	World        Mark      `json:",omitempty"` // identifies its tree
	NoCheckpoint string    `json:",omitempty"` // why it has no checkpoint
	Compacted    bool      `json:",omitempty"` // the block of an anamnesis pass replaces it in the context
	Read         bool      `json:",omitempty"` // an anamnesis pass has read it
	Carried      bool      `json:",omitempty"` // a D-Mail that left the path as it is carried the user's words over
	LeftBy       string    `json:",omitempty"` // the reason of the jump that left it
	Calls        []string  `json:",omitempty"`
	Failed       int       `json:",omitempty"` // calls whose result was an error
	Todos        []op.Todo `json:",omitempty"` // the todo list at its end
	Began        []Began   `json:",omitempty"` // calls that may have changed the world in it
}

// Began is a call that may have changed the world.
type Began struct {
	Key loop.Key
	Seq uint64 // of its result
}

// Mark is a hash of a tree's id: different ids have equal marks with a chance of 1 in 2^64. 0
// is the mark of no tree.
type Mark uint64

// MarkOf returns the mark of a tree's id.
func MarkOf(tree string) Mark {
	if tree == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(tree))
	return max(Mark(binary.BigEndian.Uint64(sum[:])), 1)
}

// Tree holds the steps of a task by their ids, from 0, the task's beginning. The zero Tree has no
// step. Concurrent reads are safe.
type Tree struct {
	List []Step
}

// Len returns the number of steps begun, including step 0.
func (t *Tree) Len() int { return len(t.List) }

// At returns a step by its id, 0 to Len()-1. Its slices are shared.
func (t *Tree) At(id int) Step { return t.List[id] }

// Add appends the next step.
func (t *Tree) Add(st Step) { t.List = append(t.List, st) }

// Edit changes a step.
func (t *Tree) Edit(id int, change func(*Step)) { change(&t.List[id]) }

// Whole reports whether each step has its place and an earlier parent, as in a tree that Add built.
func (t *Tree) Whole() bool {
	for id, st := range t.List {
		if st.ID != id || st.Parent < 0 || st.Parent > id || st.Last < st.First || !st.Ended && id < len(t.List)-1 {
			return false
		}
	}
	return true
}
