package state

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"sort"
	"strings"

	"anamnesis/opstream/op"
)

// stepsTogether is how many steps stand in one stepGroup. Finding one reads
// those before it in its group.
const stepsTogether = 64

// Steps are the steps of a task by their ids, from 0, the task's beginning. A
// task may have tens of thousands, all of them for as long as it lives, so that
// a step that is not under way takes about 25 bytes. The zero Steps holds none.
// Reading is safe for concurrent use while nothing is folded in.
type Steps struct {
	groups  []*stepGroup
	parents []stepParent // where it is not the step before, by id
	n       int
	packed  int          // of n: all, or all but open
	open    Step         // the last one, while it has not ended
	wide    map[int]Step // those that a stepGroup has no room for

	texts []string      // reasons of jumps, and why there is no checkpoint
	calls internedTexts // what the calls of a step were, as nameList joins them
	todos [][]op.Todo   // lists, in the order in which they first held
}

type stepParent struct{ id, parent int32 }

// stepGroup is a row of steps. What jumps and passes change later, and what is
// asked of many steps, stands by itself.
type stepGroup struct {
	first  uint64                // First of the first of them
	firsts [stepsTogether]uint32 // of each, after that
	flags  [stepsTogether]uint8
	leftBy [stepsTogether]uint16 // in Steps.texts
	rest   []byte                // of each in turn, as stepRest.append writes it
}

// The flags of a step. Those before stepTodos are its fields.
const (
	stepEnded = 1 << iota
	stepFolded
	stepCarried
	stepRead
	stepSaved
	stepTodos // in a checkpoint: its todo list is another than its parent's
	stepWide  // it stands in Steps.wide
	stepNext  // its parent is the step before
)

// flags returns the step's fields that are.
func (st *Step) flags() uint8 {
	var f uint8
	for _, is := range []struct {
		field bool
		flag  uint8
	}{{st.Ended, stepEnded}, {st.Folded, stepFolded}, {st.Carried, stepCarried}, {st.Read, stepRead}, {st.Saved, stepSaved}} {
		if is.field {
			f |= is.flag
		}
	}
	return f
}

func (st *Step) setFlags(f uint8) {
	st.Ended, st.Folded, st.Carried, st.Read, st.Saved = f&stepEnded != 0, f&stepFolded != 0, f&stepCarried != 0, f&stepRead != 0, f&stepSaved != 0
}

// worldMark stands for a tree's id: equal for equal ones, and for others with a
// chance of 1 in 2^64 only. 0 is that of none.
type worldMark uint64

func markOf(tree string) worldMark {
	if tree == "" {
		return 0
	}
	sum := sha256.Sum256([]byte(tree))
	return max(worldMark(binary.BigEndian.Uint64(sum[:])), 1)
}

// EndedWith reports whether a tree is the one that the step ended with.
func (st Step) EndedWith(tree string) bool { return st.World == markOf(tree) }

// Len is how many steps were begun, step 0 among them.
func (s *Steps) Len() int { return s.n }

// At returns a step by its id, 0 to Len()-1. What it refers to is shared.
func (s *Steps) At(id int) Step {
	s.check(id)
	for _, st := range s.from(id) {
		return st
	}
	return s.open
}

func (s *Steps) check(id int) {
	if id < 0 || id >= s.n {
		panic("orchestrator: no such step")
	}
}

// All returns the steps by their ids, in order.
func (s *Steps) All() iter.Seq2[int, Step] { return s.from(0) }

// from returns the steps from an id on, in order.
func (s *Steps) from(id int) iter.Seq2[int, Step] {
	return func(yield func(int, Step) bool) {
		for begin := id - id%stepsTogether; begin < s.packed; begin += stepsTogether {
			g, r := s.groups[begin/stepsTogether], stepRest{}
			data := g.rest
			for i := range min(stepsTogether, s.packed-begin) {
				data = r.next(data)
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

// unpack makes a step of its group's fields and its rest.
func (s *Steps) unpack(id int, r *stepRest) Step {
	g, i := s.place(id)
	if g.flags[i]&stepWide != 0 {
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

// place is where a packed step stands.
func (s *Steps) place(id int) (g *stepGroup, i int) {
	return s.groups[id/stepsTogether], id % stepsTogether
}

// Parent is At(id).Parent, for those who ask it of many steps; so are First,
// Ended, Saved, Folded and Read.
func (s *Steps) Parent(id int) int {
	switch f := s.flags(id); {
	case id == s.packed:
		return s.open.Parent
	case f&stepWide != 0:
		return s.wide[id].Parent
	case f&stepNext != 0:
		return id - 1
	}
	i := sort.Search(len(s.parents), func(i int) bool { return int(s.parents[i].id) >= id })
	return int(s.parents[i].parent)
}

// First is the seq of a step's first operation.
func (s *Steps) First(id int) uint64 {
	switch f := s.flags(id); {
	case id == s.packed:
		return s.open.First
	case f&stepWide != 0:
		return s.wide[id].First
	}
	g, i := s.place(id)
	return g.first + uint64(g.firsts[i])
}

// Ended reports whether a step's world was saved.
func (s *Steps) Ended(id int) bool { return s.flags(id)&stepEnded != 0 }

// Saved reports whether a step has a checkpoint.
func (s *Steps) Saved(id int) bool { return s.flags(id)&stepSaved != 0 }

// Folded reports whether an anamnesis pass stands in a step's place.
func (s *Steps) Folded(id int) bool { return s.flags(id)&stepFolded != 0 }

// Read reports whether an anamnesis pass has read a step.
func (s *Steps) Read(id int) bool { return s.flags(id)&stepRead != 0 }

func (s *Steps) flags(id int) uint8 {
	s.check(id)
	if id == s.packed {
		return s.open.flags()
	}
	g, i := s.place(id)
	return g.flags[i]
}

// add appends the next step.
func (s *Steps) add(st Step) {
	if s.packed < s.n {
		s.pack()
	}
	s.n++
	s.open = st
	if st.Ended {
		s.pack()
	}
}

// extend records an operation to a step that has not ended.
func (s *Steps) extend(id int, seq uint64) {
	s.edit(id, func(st *Step) { st.Last = seq })
}

// edit changes a step: in all but impossible streams, the one under way.
func (s *Steps) edit(id int, change func(*Step)) {
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

// mark sets flags of a step that are its fields.
func (s *Steps) mark(id int, flags uint8) {
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

// leave sets LeftBy of a step.
func (s *Steps) leave(id int, reason string) {
	no := s.textNumber(reason)
	if id == s.packed || no < 0 || s.flags(id)&stepWide != 0 {
		s.edit(id, func(st *Step) { st.LeftBy = reason })
		return
	}
	g, i := s.place(id)
	g.leftBy[i] = uint16(no)
}

// pack writes the open step down.
func (s *Steps) pack() {
	id, st := s.packed, s.open
	if id%stepsTogether == 0 {
		if id > 0 { // it grows no more
			g := s.groups[len(s.groups)-1]
			g.rest = slices.Clone(g.rest)
		}
		s.groups = append(s.groups, &stepGroup{first: st.First})
	}
	g, i := s.place(id)
	leftBy, why := s.textNumber(st.LeftBy), s.textNumber(st.NoCheckpoint)
	s.packed, s.open = s.packed+1, Step{}
	if leftBy < 0 || why < 0 || st.First < g.first || st.First-g.first > 1<<32-1 || st.Last < st.First {
		g.rest = (&stepRest{}).append(g.rest, nil, 0)
		s.widen(id, st)
		return
	}
	g.firsts[i], g.flags[i], g.leftBy[i] = uint32(st.First-g.first), st.flags(), uint16(leftBy)
	if st.Parent == id-1 {
		g.flags[i] |= stepNext
	} else {
		s.parents = append(s.parents, stepParent{int32(id), int32(st.Parent)})
	}
	r := stepRest{count: st.Last - st.First, calls: uint64(s.calls.number(nameList(st.Calls))), failed: uint64(st.Failed),
		todos: s.todoList(st.Todos), noCheckpoint: uint64(why), world: st.World}
	g.rest = r.append(g.rest, st.Began, st.First)
}

// widen puts a step whole into the table of those.
func (s *Steps) widen(id int, st Step) {
	g, i := s.place(id)
	g.flags[i] = st.flags() | stepWide
	if s.wide == nil {
		s.wide = make(map[int]Step)
	}
	s.wide[id] = st
}

// maxRecentTexts is how far back the same text is looked for: a jump leaves many
// steps for one reason.
const maxRecentTexts = 64

// textNumber returns a text its number in texts, 0 to the empty one. There is
// room for 65,535; it is -1 for one more.
func (s *Steps) textNumber(text string) int {
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

// todoList returns a list its number. A list mostly is that of the step before.
func (s *Steps) todoList(list []op.Todo) uint64 {
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

// nameList joins names to one text, each followed by a NUL; names takes them
// apart.
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

// internedTexts are texts that are needed more than once, by numbers. 0 is the
// empty text.
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
		t.list = append(t.list, s)
		n = uint32(len(t.list))
		t.no = put(t.no, s, n)
	}
	return n
}

func (t *internedTexts) at(n uint32) string {
	if n == 0 {
		return ""
	}
	return t.list[n-1]
}
