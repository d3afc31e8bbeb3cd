// Package steps is the tree of a task's steps, in which a jump back begins a new branch. It
// depends on nothing but its arguments.
package steps

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
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

// groupSize is the number of steps in a group. Finding one decodes those before it in its
// group.
const groupSize = 64

// Tree holds the steps of a task by their ids, from 0, the task's beginning. A task may have
// tens of thousands; so an ended step takes about 25 bytes. As plain rows of 56 bytes, ten
// thousand steps exceed the growth of the heap that the soak allows (1.35 times; the limit is
// 1.3). The zero Tree has no step. Concurrent reads are safe.
type Tree struct {
	groups  []*group
	parents []parentOf // where it is not the step before, by id
	n       int
	packed  int          // of n: all, or all but open
	open    Step         // the last one, while it has not ended
	wide    map[int]Step // those that a group has no room for

	texts []string      // reasons of jumps and of missing checkpoints
	calls internedTexts // what the calls of a step were, as nameList joins them
	todos [][]op.Todo   // distinct lists, in order of appearance
}

type parentOf struct{ id, parent int32 }

// group is a row of steps. Fields that later jumps and passes change, or that are read for
// many steps, are separate arrays.
type group struct {
	first  uint64            // First of the first of them
	firsts [groupSize]uint32 // of each, after that
	flags  [groupSize]Flags
	leftBy [groupSize]uint16 // in Tree.texts
	rest   []byte            // of each in turn, as restOf.append writes it
}

// Flags of a row that are not fields of its step.
const (
	flagWide Flags = 1 << (iota + 5) // the step is in Tree.wide
	flagNext                         // its parent is the step before
)

// Len returns the number of steps begun, including step 0.
func (s *Tree) Len() int { return s.n }

// At returns a step by its id, 0 to Len()-1. Its slices are shared.
func (s *Tree) At(id int) Step {
	s.check(id)
	for _, st := range s.from(id) {
		return st
	}
	return s.open
}

func (s *Tree) check(id int) {
	if id < 0 || id >= s.n {
		panic("steps: no such step")
	}
}

// All returns the steps by their ids, in order.
func (s *Tree) All() iter.Seq2[int, Step] { return s.from(0) }

// from returns the steps from an id on, in order.
func (s *Tree) from(id int) iter.Seq2[int, Step] {
	return func(yield func(int, Step) bool) {
		for begin := id - id%groupSize; begin < s.packed; begin += groupSize {
			g, r := s.groups[begin/groupSize], restOf{}
			data := g.rest
			for i := range min(groupSize, s.packed-begin) {
				data, _ = r.next(data)
				if begin+i >= id && !yield(begin+i, s.unpack(begin+i, &r)) {
					return
				}
			}
		}
		if s.packed < s.n {
			yield(s.packed, s.open)
		}
	}
}

// unpack assembles a step from its group's fields and its rest.
func (s *Tree) unpack(id int, r *restOf) Step {
	g, i := s.place(id)
	if g.flags[i]&flagWide != 0 {
		return s.wide[id]
	}
	st := Step{ID: id, Parent: s.Parent(id), First: g.first + uint64(g.firsts[i]), World: r.world, Failed: int(r.failed),
		NoCheckpoint: textAt(s.texts, r.noCheckpoint), LeftBy: textAt(s.texts, uint64(g.leftBy[i])), Calls: names(s.calls.at(uint32(r.calls)))}
	st.Last = st.First + r.count
	st.setFlags(g.flags[i])
	if r.todos > 0 {
		st.Todos = s.todos[r.todos-1]
	}
	st.Began = r.beganAfter(st.First)
	return st
}

// place returns the group and the index of a packed step.
func (s *Tree) place(id int) (g *group, i int) {
	return s.groups[id/groupSize], id % groupSize
}

// Parent is At(id).Parent without decoding the step; First, Ended, Saved, Compacted and Read are
// likewise.
func (s *Tree) Parent(id int) int {
	switch f := s.flags(id); {
	case id == s.packed:
		return s.open.Parent
	case f&flagWide != 0:
		return s.wide[id].Parent
	case f&flagNext != 0:
		return id - 1
	}
	i := sort.Search(len(s.parents), func(i int) bool { return int(s.parents[i].id) >= id })
	return int(s.parents[i].parent)
}

// First returns the seq of a step's first operation.
func (s *Tree) First(id int) uint64 {
	switch f := s.flags(id); {
	case id == s.packed:
		return s.open.First
	case f&flagWide != 0:
		return s.wide[id].First
	}
	g, i := s.place(id)
	return g.first + uint64(g.firsts[i])
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
	s.check(id)
	if id == s.packed {
		return s.open.flags()
	}
	g, i := s.place(id)
	return g.flags[i]
}

// Add appends the next step.
func (s *Tree) Add(st Step) {
	if s.packed < s.n {
		s.pack()
	}
	s.n++
	s.open = st
	if st.Ended {
		s.pack()
	}
}

// Edit changes a step. In a stream of this program that is the step under way.
func (s *Tree) Edit(id int, change func(*Step)) {
	if s.check(id); id == s.packed {
		change(&s.open)
		if s.open.Ended {
			s.pack()
		}
		return
	}
	st := s.At(id)
	change(&st)
	s.widen(id, st)
}

// Mark sets flags of a step.
func (s *Tree) Mark(id int, flags Flags) {
	if flags |= s.flags(id); id == s.packed {
		s.open.setFlags(flags)
		return
	}
	g, i := s.place(id)
	g.flags[i] = flags
	if st, wide := s.wide[id]; wide {
		st.setFlags(flags)
		s.wide[id] = st
	}
}

// Leave records the reason of the jump that left a step.
func (s *Tree) Leave(id int, reason string) {
	no := s.textNumber(reason)
	if id == s.packed || no < 0 || s.flags(id)&flagWide != 0 {
		s.Edit(id, func(st *Step) { st.LeftBy = reason })
		return
	}
	g, i := s.place(id)
	g.leftBy[i] = uint16(no)
}

// pack encodes the open step into its group.
func (s *Tree) pack() {
	id, st := s.packed, s.open
	if id%groupSize == 0 {
		if id > 0 { // it is complete
			g := s.groups[len(s.groups)-1]
			g.rest = slices.Clone(g.rest)
		}
		s.groups = append(s.groups, &group{first: st.First})
	}
	g, i := s.place(id)
	leftBy, why := s.textNumber(st.LeftBy), s.textNumber(st.NoCheckpoint)
	s.packed, s.open = s.packed+1, Step{}
	if leftBy < 0 || why < 0 || st.First < g.first || st.First-g.first > 1<<32-1 || st.Last < st.First {
		g.rest = (&restOf{}).append(g.rest, nil, 0)
		s.widen(id, st)
		return
	}
	g.firsts[i], g.flags[i], g.leftBy[i] = uint32(st.First-g.first), st.flags(), uint16(leftBy)
	if st.Parent == id-1 {
		g.flags[i] |= flagNext
	} else {
		s.parents = append(s.parents, parentOf{int32(id), int32(st.Parent)})
	}
	r := restOf{count: st.Last - st.First, calls: uint64(s.calls.number(nameList(st.Calls))), failed: uint64(st.Failed),
		todos: s.todoList(st.Todos), noCheckpoint: uint64(why), world: st.World}
	g.rest = r.append(g.rest, st.Began, st.First)
}

// widen stores a step in the table of wide steps.
func (s *Tree) widen(id int, st Step) {
	g, i := s.place(id)
	g.flags[i] = st.flags() | flagWide
	if s.wide == nil {
		s.wide = make(map[int]Step)
	}
	s.wide[id] = st
}

// maxRecentTexts is how far back an equal text is looked for: a jump leaves many steps for one
// reason.
const maxRecentTexts = 64

// textNumber returns the number of a text in texts, 0 for the empty one. At most 65,535 fit;
// it returns -1 for more.
func (s *Tree) textNumber(text string) int {
	if text == "" {
		return 0
	}
	for i := len(s.texts); i > max(0, len(s.texts)-maxRecentTexts); i-- {
		if s.texts[i-1] == text {
			return i
		}
	}
	if len(s.texts) == 1<<16-1 {
		return -1
	}
	s.texts = append(s.texts, text)
	return len(s.texts)
}

func textAt(texts []string, no uint64) string {
	if no == 0 {
		return ""
	}
	return texts[no-1]
}

// todoList returns the number of a list, which is mostly that of the previous step.
func (s *Tree) todoList(list []op.Todo) uint64 {
	if len(list) == 0 {
		return 0
	}
	for i := len(s.todos) - 1; i >= 0; i-- {
		if slices.Equal(s.todos[i], list) {
			return uint64(i + 1)
		}
	}
	s.todos = append(s.todos, list)
	return uint64(len(s.todos))
}

// nameList joins names, each followed by a NUL; names splits them.
func nameList(list []string) string {
	var sb strings.Builder
	for _, n := range list {
		sb.WriteString(n)
		sb.WriteByte(0)
	}
	return sb.String()
}

func names(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s[:len(s)-1], "\x00")
}

// internedTexts numbers texts that repeat. 0 is the empty text.
type internedTexts struct {
	list []string
	no   map[string]uint32
}

func (t *internedTexts) number(s string) uint32 {
	if s == "" {
		return 0
	}
	n, known := t.no[s]
	if !known {
		if t.no == nil {
			t.no = make(map[string]uint32)
		}
		t.list = append(t.list, s)
		n = uint32(len(t.list))
		t.no[s] = n
	}
	return n
}

func (t *internedTexts) at(n uint32) string {
	if n == 0 {
		return ""
	}
	return t.list[n-1]
}
