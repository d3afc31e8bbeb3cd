package state

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/loop"
)

// FoldVersion names what Fold makes of a stream. It is raised whenever Fold or
// State changes its meaning: a checkpoint of another version is not used.
const FoldVersion = "29"

// FromSnapshot returns the state a checkpoint holds, or that of an empty stream.
func FromSnapshot(stream interface {
	Folded() (fold []byte, seq uint64, ok bool)
}) *State {
	if fold, seq, ok := stream.Folded(); ok {
		if s, err := Unmarshal(fold); err == nil && s.Last == seq {
			return s
		}
	}
	return new(State)
}

// ErrSnapshot is returned for bytes that are no folded state.
var ErrSnapshot = errors.New("not a folded state")

// foldedHead is the part of a folded state that does not grow with the
// stream: the context, the turn under way, the figures. It is JSON, and a nil
// stays a nil, so that a state comes back as it was.
type foldedHead struct {
	State   *State      // its exported fields, without Steps
	Loops   [][2]uint64 // step and operation of each backward jump
	System  string
	Tok     [2]int // tokens of the system prompt, and of the whole context
	Entries []Entry
	Held    []Entry
	Asking  bool
	Waiting map[string]bool
}

// Marshal writes a state so that Unmarshal gives it back: the head,
// then the steps and the token counts in a compact binary form, since a long
// task has hundreds of thousands.
func Marshal(s *State) ([]byte, error) {
	bare := *s
	p := &s.projection
	head := foldedHead{
		State: &bare, System: p.system, Tok: [2]int{p.systemTok, p.tokens}, Asking: p.asking, Waiting: p.waiting,
		Entries: p.entries, Held: p.held,
	}
	for _, l := range s.loops {
		head.Loops = append(head.Loops, [2]uint64{uint64(l.to), l.seq})
	}
	data, err := json.Marshal(head)
	if err != nil {
		return nil, fmt.Errorf("write folded state: %w", err)
	}
	w := stateWriter{names: make(map[string]uint64)}
	w.text(string(data))
	w.number(uint64(s.Steps.Len()))
	for _, st := range s.Steps.All() {
		w.step(&s.Steps, &st)
	}
	w.number(s.sums.n)
	for tok := range s.sums.all() {
		w.number(tok)
	}
	return w.buf, nil
}

// Unmarshal reads what Marshal wrote. Other bytes are ErrSnapshot.
func Unmarshal(data []byte) (*State, error) {
	r := stateReader{rest: data}
	var head foldedHead
	if err := json.Unmarshal([]byte(r.text()), &head); err != nil || head.State == nil {
		return nil, fmt.Errorf("%w: its head is not readable", ErrSnapshot)
	}
	s := head.State
	for _, l := range head.Loops {
		s.loops = append(s.loops, loopTick{int(l[0]), l[1]})
	}
	s.projection = projection{
		system: head.System, systemTok: head.Tok[0], tokens: head.Tok[1], asking: head.Asking, waiting: head.Waiting,
		entries: head.Entries, held: head.Held,
	}
	for _, e := range s.projection.entries {
		for _, part := range e.Msg.Parts {
			s.projection.images += len(part.Base64)
		}
	}
	for id := range r.count() {
		r.step(&s.Steps, id)
	}
	for range r.count() {
		s.sums.add(r.number())
	}
	if r.bad || len(r.rest) != 0 || s.sums.n != s.Last {
		return nil, fmt.Errorf("%w: its steps or token counts are not readable", ErrSnapshot)
	}
	return s, nil
}

// stateWriter appends to buf. Names of tools are written once.
type stateWriter struct {
	buf    []byte
	names  map[string]uint64
	before Step
}

func (w *stateWriter) number(n uint64) { w.buf = binary.AppendUvarint(w.buf, n) }

func (w *stateWriter) text(s string) {
	w.number(uint64(len(s)))
	w.buf = append(w.buf, s...)
}

// name writes a name's number, and the name where it is new.
func (w *stateWriter) name(s string) {
	n, known := w.names[s]
	if !known {
		n = uint64(len(w.names))
		w.names[s] = n
	}
	w.number(n)
	if !known {
		w.text(s)
	}
}

func (w *stateWriter) step(steps *Steps, st *Step) {
	flags := uint64(st.flags())
	if !slices.Equal(st.Todos, todosBefore(steps, st, &w.before)) {
		flags |= stepTodos
	}
	w.number(flags)
	w.number(uint64(st.Parent))
	w.number(st.First)
	w.number(st.Last)
	w.number(uint64(st.World - w.before.World))
	w.before = *st
	w.text(st.NoCheckpoint)
	w.text(st.LeftBy)
	w.number(uint64(st.Failed))
	if flags&stepTodos != 0 {
		w.number(uint64(len(st.Todos)))
		for _, t := range st.Todos {
			w.text(t.Title)
			w.name(t.Status)
		}
	}
	w.number(uint64(len(st.Calls)))
	for _, c := range st.Calls {
		w.name(c)
	}
	w.number(uint64(len(st.Began)))
	for _, b := range st.Began {
		w.number(uint64(b.Key))
		w.number(b.Seq)
	}
}

// stateReader takes from rest. After the first fault it gives zeros, and bad
// is set.
type stateReader struct {
	rest   []byte
	bad    bool
	names  []string
	before Step
}

func (r *stateReader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// count reads how many things follow, each of at least one byte.
func (r *stateReader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return 0
	}
	return int(n)
}

// id reads a number that must be less than a bound.
func (r *stateReader) id(bound int) int {
	n := r.number()
	if n >= uint64(bound) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *stateReader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	out := r.rest[:n]
	r.rest = r.rest[n:]
	return out
}

func (r *stateReader) text() string { return string(r.bytes(r.count())) }

func (r *stateReader) name() string {
	n := r.id(len(r.names) + 1)
	if n == len(r.names) {
		r.names = append(r.names, r.text())
	}
	return r.names[n]
}

func (r *stateReader) step(steps *Steps, id int) {
	flags := r.number()
	st := Step{ID: id}
	st.setFlags(uint8(flags))
	st.Parent = r.id(id + 1)
	st.First, st.Last = r.number(), r.number()
	st.World = r.before.World + worldMark(r.number())
	st.NoCheckpoint, st.LeftBy = r.text(), r.text()
	st.Failed = int(r.number())
	st.Todos = todosBefore(steps, &st, &r.before)
	if flags&stepTodos != 0 {
		st.Todos = r.todos()
	}
	if n := r.count(); n > 0 {
		st.Calls = make([]string, n)
		for i := range st.Calls {
			st.Calls[i] = r.name()
		}
	}
	if n := r.count(); n > 0 {
		st.Began = make([]Began, n)
		for i := range st.Began {
			st.Began[i] = Began{loop.Key(r.number()), r.number()}
		}
	}
	steps.add(st)
	r.before = st
}

// todosBefore is the todo list that a step which set none would end with. before
// is the step before it.
func todosBefore(steps *Steps, st, before *Step) []op.Todo {
	switch {
	case !st.Ended || st.Parent == st.ID:
		return nil
	case st.Parent == st.ID-1:
		return before.Todos
	}
	return steps.At(st.Parent).Todos
}

func (r *stateReader) todos() []op.Todo {
	var out []op.Todo
	for range r.count() {
		out = append(out, op.Todo{Title: r.text(), Status: r.name()})
	}
	return out
}

// SameSnapshot reports whether two written states say the same. What the process
// that recorded an operation holds as an empty list, one that read it holds as
// none.
func SameSnapshot(a, b []byte) bool {
	ra, rb := stateReader{rest: a}, stateReader{rest: b}
	var ha, hb any
	if json.Unmarshal([]byte(ra.text()), &ha) != nil || json.Unmarshal([]byte(rb.text()), &hb) != nil {
		return false
	}
	return bytes.Equal(ra.rest, rb.rest) && reflect.DeepEqual(withoutEmpty(ha), withoutEmpty(hb))
}

// withoutEmpty takes empty lists and objects out of a JSON value, and nulls.
func withoutEmpty(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e = withoutEmpty(e); e == nil {
				delete(v, k)
			} else {
				v[k] = e
			}
		}
		if len(v) == 0 {
			return nil
		}
	case []any:
		if len(v) == 0 {
			return nil
		}
		for i, e := range v {
			v[i] = withoutEmpty(e)
		}
	}
	return v
}
