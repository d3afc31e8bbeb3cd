// Package steps is the tree of a task's steps, in which a jump back begins a new branch. It
// depends on nothing but its arguments.
package steps

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// Step is one turn of the loop: ask, run tools, save the world.
type Step struct {
	ID     int
	Parent int
	First  uint64 // seq of its first operation
	Last   uint64 // seq of its last operation so far
	Ended  bool   // its world.saved was recorded
	// Saved: it has a checkpoint, whose commit and tree are in operation Last.
	Saved        bool
	World        Mark      // identifies its tree
	NoCheckpoint string    `json:",omitempty"` // why it has no checkpoint
	Compacted    bool      // the block of an anamnesis pass replaces it in the context
	Read         bool      // an anamnesis pass has read it
	Carried      bool      // a D-Mail that left the path as it is carried the user's words from it over
	LeftBy       string    `json:",omitempty"` // the reason of the jump that left it
	Calls        []string  `json:",omitempty"`
	Failed       int       // calls whose result was an error
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

// EndedWith reports whether the step ended with a tree.
func (st Step) EndedWith(tree string) bool { return st.World == MarkOf(tree) }

// Flags are the boolean fields of a step.
type Flags uint8

// The flags.
const (
	FlagEnded Flags = 1 << iota
	FlagCompacted
	FlagCarried
	FlagRead
	FlagSaved
)

func (st *Step) flags() (f Flags) {
	for i, is := range []bool{st.Ended, st.Compacted, st.Carried, st.Read, st.Saved} {
		if is {
			f |= 1 << i
		}
	}
	return f
}

func (st *Step) setFlags(f Flags) {
	st.Ended, st.Compacted, st.Carried, st.Read, st.Saved = f&FlagEnded != 0, f&FlagCompacted != 0, f&FlagCarried != 0, f&FlagRead != 0, f&FlagSaved != 0
}

// Tree holds the steps of a task by their ids, from 0, the task's beginning. A task may have
// tens of thousands, so an ended step is a row of 32 bytes and refers to what many steps have
// in common. The zero Tree has no step. Concurrent reads are safe.
type Tree struct {
	rows   []row // of the steps, but for open
	open   Step  // the last one, while it has not ended
	isOpen bool
	began  []Began // of the rows, those of one step side by side

	details interned[detail]
	texts   interned[string] // reasons of jumps and of missing checkpoints; names of calls, as joinNames joins them
	todos   [][]op.Todo      // distinct lists, in order of appearance
}

// row is an ended step.
type row struct {
	World  Mark
	First  uint32
	Count  uint32 // of operations, after the first
	Parent int32
	LeftBy uint32 // in Tree.texts
	Detail uint32 // in Tree.details
	Began  uint32 // where its calls begin in Tree.began
}

// MaxSeq is the last operation that a step may have.
const MaxSeq = 1<<32 - 1

// detail is the part of a step that it shares with many others.
type detail struct {
	Flags               Flags
	Calls, NoCheckpoint uint32 // in Tree.texts
	Todos               uint32 // in Tree.todos, plus 1; 0: none
	Failed, Began       uint32 // how many
}

// Len returns the number of steps begun, including step 0.
func (s *Tree) Len() int {
	if s.isOpen {
		return len(s.rows) + 1
	}
	return len(s.rows)
}

// At returns a step by its id, 0 to Len()-1. Its slices are shared.
func (s *Tree) At(id int) Step {
	if s.noRow(id) {
		return s.open
	}
	r, d := &s.rows[id], s.detail(id)
	st := Step{ID: id, Parent: int(r.Parent), First: uint64(r.First), Last: uint64(r.First) + uint64(r.Count), World: r.World, Failed: int(d.Failed),
		NoCheckpoint: s.texts.at(d.NoCheckpoint), LeftBy: s.texts.at(r.LeftBy), Calls: splitNames(s.texts.at(d.Calls))}
	st.setFlags(d.Flags)
	if d.Todos > 0 {
		st.Todos = s.todos[d.Todos-1]
	}
	if d.Began > 0 {
		st.Began = s.began[r.Began:][:d.Began:d.Began]
	}
	return st
}

// noRow reports whether a step is the open one.
func (s *Tree) noRow(id int) bool { return s.isOpen && id == len(s.rows) }

func (s *Tree) detail(id int) detail { return s.details.at(s.rows[id].Detail) }

// All returns the steps by their ids, in order.
func (s *Tree) All() iter.Seq2[int, Step] {
	return func(yield func(int, Step) bool) {
		for id := range s.Len() {
			if !yield(id, s.At(id)) {
				return
			}
		}
	}
}

// Parent is At(id).Parent without the rest of the step; First, Ended, Saved, Compacted, Carried
// and Read are likewise.
func (s *Tree) Parent(id int) int {
	if s.noRow(id) {
		return s.open.Parent
	}
	return int(s.rows[id].Parent)
}

// First returns the seq of a step's first operation.
func (s *Tree) First(id int) uint64 {
	if s.noRow(id) {
		return s.open.First
	}
	return uint64(s.rows[id].First)
}

// Ended reports whether a step's world was saved.
func (s *Tree) Ended(id int) bool { return s.flags(id)&FlagEnded != 0 }

// Saved reports whether a step has a checkpoint.
func (s *Tree) Saved(id int) bool { return s.flags(id)&FlagSaved != 0 }

// Compacted reports whether the block of a pass replaces a step.
func (s *Tree) Compacted(id int) bool { return s.flags(id)&FlagCompacted != 0 }

// Carried reports whether a D-Mail carried the user's words from a step over.
func (s *Tree) Carried(id int) bool { return s.flags(id)&FlagCarried != 0 }

// Read reports whether an anamnesis pass has read a step.
func (s *Tree) Read(id int) bool { return s.flags(id)&FlagRead != 0 }

func (s *Tree) flags(id int) Flags {
	if s.noRow(id) {
		return s.open.flags()
	}
	return s.detail(id).Flags
}

// Add appends the next step.
func (s *Tree) Add(st Step) {
	if s.isOpen {
		s.close()
	}
	if s.open, s.isOpen = st, true; st.Ended {
		s.close()
	}
}

// close makes the open step a row.
func (s *Tree) close() {
	st := s.open
	s.rows, s.open, s.isOpen = append(s.rows, row{}), Step{}, false
	s.set(&st)
}

// set writes the row of a step.
func (s *Tree) set(st *Step) {
	r := &s.rows[st.ID]
	at := int(r.Began)
	if n := len(st.Began); n > 0 && (at+n > len(s.began) || !slices.Equal(s.began[at:at+n], st.Began)) {
		at = len(s.began)
		s.began = append(s.began, st.Began...)
	}
	*r = row{
		World: st.World, First: uint32(st.First), Count: uint32(st.Last - st.First), Parent: int32(st.Parent), LeftBy: s.texts.number(st.LeftBy), Began: uint32(at),
		Detail: s.details.number(detail{
			Flags: st.flags(), Calls: s.texts.number(joinNames(st.Calls)), NoCheckpoint: s.texts.number(st.NoCheckpoint),
			Todos: s.todoList(st.Todos), Failed: uint32(st.Failed), Began: uint32(len(st.Began)),
		}),
	}
}

// Edit changes a step. In a stream of this program that is the step under way.
func (s *Tree) Edit(id int, change func(*Step)) {
	if s.noRow(id) {
		if change(&s.open); s.open.Ended {
			s.close()
		}
		return
	}
	st := s.At(id)
	change(&st)
	s.set(&st)
}

// Mark sets flags of a step.
func (s *Tree) Mark(id int, flags Flags) {
	if flags |= s.flags(id); s.noRow(id) {
		s.open.setFlags(flags)
		return
	}
	d := s.detail(id)
	d.Flags = flags
	s.rows[id].Detail = s.details.number(d)
}

// Leave records the reason of the jump that left a step.
func (s *Tree) Leave(id int, reason string) {
	if s.noRow(id) {
		s.open.LeftBy = reason
		return
	}
	s.rows[id].LeftBy = s.texts.number(reason)
}

// todoList returns the number of a list, which is mostly that of the previous step.
func (s *Tree) todoList(list []op.Todo) uint32 {
	if len(list) == 0 {
		return 0
	}
	for i := len(s.todos) - 1; i >= 0; i-- {
		if slices.Equal(s.todos[i], list) {
			return uint32(i + 1)
		}
	}
	s.todos = append(s.todos, list)
	return uint32(len(s.todos))
}

// joinNames joins names, each followed by a NUL; splitNames splits them.
func joinNames(list []string) string {
	var sb strings.Builder
	for _, n := range list {
		sb.WriteString(n)
		sb.WriteByte(0)
	}
	return sb.String()
}

func splitNames(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s[:len(s)-1], "\x00")
}

// interned numbers values that repeat. 0 is the zero value.
type interned[T comparable] struct {
	list []T
	no   map[T]uint32
}

func (t *interned[T]) number(v T) uint32 {
	var zero T
	if v == zero {
		return 0
	}
	n, known := t.no[v]
	if !known {
		if t.no == nil {
			t.no = make(map[T]uint32)
		}
		t.list = append(t.list, v)
		n = uint32(len(t.list))
		t.no[v] = n
	}
	return n
}

func (t *interned[T]) at(n uint32) (v T) {
	if n > 0 {
		v = t.list[n-1]
	}
	return v
}
