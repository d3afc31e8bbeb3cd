package steps

import (
	"encoding/binary"

	"anamnesis/orchestrator/loop"
)

// restOf is the part of an ended step that never changes.
type restOf struct {
	count        uint64 // of operations, after the first
	calls        uint64 // in Tree.calls
	failed       uint64
	todos        uint64 // in Tree.todos, plus 1; 0: none
	noCheckpoint uint64 // in Tree.texts
	world        Mark
	began        []byte // of Step.Began, nBegan times: eight bytes of its key, its distance from the first operation
	nBegan       uint64
}

// These flags mark the parts of a rest that differ from the usual value and are written.
const (
	restWorld        = 1 << iota // it is not that of the step before in the group
	restFailed                   // more than none
	restTodos                    // likewise
	restNoCheckpoint             // likewise
	restBegan                    // times the number of calls in Began
)

// append appends a step's rest, with what it began, after those of the earlier steps in its
// group.
func (r *restOf) append(dst []byte, began []Began, first uint64) []byte {
	before := lastWorld(dst)
	head := uint64(len(began)) * restBegan
	for _, is := range []struct {
		so   bool
		flag uint64
	}{{r.world != before, restWorld}, {r.failed > 0, restFailed}, {r.todos > 0, restTodos}, {r.noCheckpoint > 0, restNoCheckpoint}} {
		if is.so {
			head |= is.flag
		}
	}
	dst = binary.AppendUvarint(dst, head)
	dst = binary.AppendUvarint(dst, r.count)
	dst = binary.AppendUvarint(dst, r.calls)
	if head&restWorld != 0 {
		dst = binary.BigEndian.AppendUint64(dst, uint64(r.world))
	}
	for _, n := range []uint64{r.failed, r.todos, r.noCheckpoint} {
		if n > 0 {
			dst = binary.AppendUvarint(dst, n)
		}
	}
	for _, b := range began {
		dst = binary.BigEndian.AppendUint64(dst, uint64(b.Key))
		dst = binary.AppendVarint(dst, int64(b.Seq-first))
	}
	return dst
}

// lastWorld returns the world of the last step of a group.
func lastWorld(data []byte) Mark {
	var r restOf
	for len(data) > 0 {
		data, _ = r.next(data)
	}
	return r.world
}

// next turns the rest of one step into that of the next, whose data begin with it, and returns
// the remaining data. ok is false if data are malformed.
func (r *restOf) next(data []byte) (_ []byte, ok bool) {
	ok = true
	number := func() uint64 {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			ok, data = false, nil
			return 0
		}
		data = data[size:]
		return n
	}
	eight := func() (n uint64) {
		if len(data) < 8 {
			ok, data = false, nil
			return 0
		}
		n, data = binary.BigEndian.Uint64(data), data[8:]
		return n
	}
	head := number()
	r.count, r.calls = number(), number()
	if head&restWorld != 0 {
		r.world = Mark(eight())
	}
	for _, is := range []struct {
		flag uint64
		n    *uint64
	}{{restFailed, &r.failed}, {restTodos, &r.todos}, {restNoCheckpoint, &r.noCheckpoint}} {
		if *is.n = 0; head&is.flag != 0 {
			*is.n = number()
		}
	}
	r.nBegan, r.began = head/restBegan, data
	for n := r.nBegan; ok && n > 0; n-- {
		eight()
		number()
	}
	return data, ok
}

// beganAfter returns what a step began whose first operation is first.
func (r *restOf) beganAfter(first uint64) []Began {
	if r.nBegan == 0 {
		return nil
	}
	out, data := make([]Began, r.nBegan), r.began
	for i := range out {
		after, size := binary.Varint(data[8:])
		out[i] = Began{loop.Key(binary.BigEndian.Uint64(data)), first + uint64(after)}
		data = data[8+size:]
	}
	return out
}
