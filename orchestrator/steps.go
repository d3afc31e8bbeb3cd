package orchestrator

import (
	"encoding/base64"
	"encoding/hex"
	"iter"
	"math"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// stepChunk is how many steps Steps grows by, so that growing copies nothing.
const stepChunk = 256

// Steps are the steps of a task by their ids, from 0, the task's beginning. A
// task may have tens of thousands, all of them for as long as it lives, so that
// a step that has ended takes about 90 bytes. The zero Steps holds none.
// Reading is safe for concurrent use while nothing is folded in.
type Steps struct {
	chunks []*[stepChunk]packedStep
	n      int
	open   Step         // the last one, while it has not ended
	wide   map[int]Step // those that packedStep has no room for

	texts internedTexts // reasons of jumps
	calls internedTexts // what the calls of a step were, as nameList joins them
	todos [][]op.Todo   // lists, in the order in which they first held
}

// packedStep is a Step without pointers.
type packedStep struct {
	first        uint64
	count        uint32 // of operations, after the first
	parent       int32
	commit, tree [20]byte
	began        [12]byte // the first of Step.Began
	beganAt      uint32   // its distance from first, plus 1; 0: there is none
	leftBy       uint32   // in Steps.texts
	calls        uint32   // in Steps.calls
	todos        uint32   // in Steps.todos, plus 1; 0: none
	failed       uint16
	flags        uint16
}

// The flags of a step. Those before stepTodos are its fields.
const (
	stepEnded = 1 << iota
	stepFolded
	stepCarried
	stepRead
	stepTodos // in a checkpoint: its todo list is another than its parent's
	stepWide  // it stands in Steps.wide
)

// flags gives the step's fields that are.
func (st *Step) flags() uint16 {
	var f uint16
	if st.Ended {
		f |= stepEnded
	}
	if st.Folded {
		f |= stepFolded
	}
	if st.Carried {
		f |= stepCarried
	}
	if st.Read {
		f |= stepRead
	}
	return f
}

func (st *Step) setFlags(f uint16) {
	st.Ended, st.Folded, st.Carried, st.Read = f&stepEnded != 0, f&stepFolded != 0, f&stepCarried != 0, f&stepRead != 0
}

// Len is how many steps were begun, step 0 among them.
func (s *Steps) Len() int { return s.n }

// At gives a step by its id, 0 to Len()-1. What it refers to is shared.
func (s *Steps) At(id int) Step {
	p := s.packed(id)
	if p.flags&stepEnded == 0 && id == s.n-1 {
		return s.open
	}
	if p.flags&stepWide != 0 {
		return s.wide[id]
	}
	st := Step{ID: id, Parent: int(p.parent), First: p.first, Last: p.first + uint64(p.count), Failed: int(p.failed),
		Commit: hashDigits(p.commit), Tree: hashDigits(p.tree), LeftBy: s.texts.at(p.leftBy), Calls: names(s.calls.at(p.calls))}
	st.setFlags(p.flags)
	if p.beganAt > 0 {
		st.Began = []Began{{loop.Key(base64.RawURLEncoding.EncodeToString(p.began[:])), p.first + uint64(p.beganAt) - 1}}
	}
	if p.todos > 0 {
		st.Todos = s.todos[p.todos-1]
	}
	return st
}

// All gives the steps by their ids, in order.
func (s *Steps) All() iter.Seq2[int, Step] {
	return func(yield func(int, Step) bool) {
		for id := 0; id < s.n && yield(id, s.At(id)); id++ {
		}
	}
}

func (s *Steps) packed(id int) *packedStep {
	if id < 0 || id >= s.n {
		panic("orchestrator: no such step")
	}
	return &s.chunks[id/stepChunk][id%stepChunk]
}

// Parent is At(id).Parent, for those who ask it of many steps; so are First,
// Ended, Folded and Read.
func (s *Steps) Parent(id int) int { return int(s.packed(id).parent) }

// First is the seq of a step's first operation.
func (s *Steps) First(id int) uint64 { return s.packed(id).first }

// Ended reports whether a step's world was saved.
func (s *Steps) Ended(id int) bool { return s.packed(id).flags&stepEnded != 0 }

// Folded reports whether an anamnesis pass stands in a step's place.
func (s *Steps) Folded(id int) bool { return s.packed(id).flags&stepFolded != 0 }

// Read reports whether an anamnesis pass has read a step.
func (s *Steps) Read(id int) bool { return s.packed(id).flags&stepRead != 0 }

// add appends the next step.
func (s *Steps) add(st Step) {
	if s.n%stepChunk == 0 {
		s.chunks = append(s.chunks, new([stepChunk]packedStep))
	}
	if s.n > 0 && !s.Ended(s.n-1) {
		s.pack(s.n-1, s.open)
	}
	s.n++
	s.set(st.ID, st)
}

// edit changes a step.
func (s *Steps) edit(id int, change func(*Step)) {
	st := s.At(id)
	change(&st)
	s.set(id, st)
}

// extend books an operation to a step that has not ended.
func (s *Steps) extend(id int, seq uint64) {
	s.edit(id, func(st *Step) { st.Last = seq })
}

func (s *Steps) set(id int, st Step) {
	p := s.packed(id)
	if !st.Ended && id == s.n-1 {
		p.first, p.parent, p.flags = st.First, int32(st.Parent), st.flags()
		s.open = st
		return
	}
	s.pack(id, st)
}

// pack writes a step down.
func (s *Steps) pack(id int, st Step) {
	p := s.packed(id)
	*p = packedStep{first: st.First, count: uint32(st.Last - st.First), parent: int32(st.Parent), failed: uint16(st.Failed), flags: st.flags()}
	if id == s.n-1 {
		s.open = Step{}
	}
	delete(s.wide, id)
	if !p.fit(&st) {
		p.flags |= stepWide
		if s.wide == nil {
			s.wide = make(map[int]Step)
		}
		s.wide[id] = st
		return
	}
	p.leftBy, p.calls, p.todos = s.texts.number(st.LeftBy), s.calls.number(nameList(st.Calls)), s.todoList(st.Todos)
}

// fit takes over what needs no table. It reports whether the whole step has
// room.
func (p *packedStep) fit(st *Step) bool {
	ok := st.NoCheckpoint == "" && st.Last >= st.First && st.Last-st.First <= math.MaxUint32 && st.Failed <= math.MaxUint16 &&
		packHash(&p.commit, st.Commit) && packHash(&p.tree, st.Tree)
	switch len(st.Began) {
	case 0:
		return ok
	case 1:
		b := st.Began[0]
		raw, err := base64.RawURLEncoding.Strict().DecodeString(string(b.Key))
		if !ok || err != nil || len(raw) != len(p.began) || b.Seq < st.First || b.Seq-st.First >= math.MaxUint32 {
			return false
		}
		p.began, p.beganAt = [12]byte(raw), uint32(b.Seq-st.First+1)
		return true
	}
	return false
}

// packHash reports whether a hash is empty, or 40 lower case digits that are
// not all zero.
func packHash(dst *[20]byte, s string) bool {
	if s == "" {
		return true
	}
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(dst) || hex.EncodeToString(raw) != s {
		return false
	}
	*dst = [20]byte(raw)
	return *dst != [20]byte{}
}

func hashDigits(h [20]byte) string {
	if h == [20]byte{} {
		return ""
	}
	return hex.EncodeToString(h[:])
}

// todoList gives a list its number. A list mostly is that of the step before.
func (s *Steps) todoList(list []op.Todo) uint32 {
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
