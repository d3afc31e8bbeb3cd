package state

import (
	"encoding/binary"

	"anamnesis/orchestrator/loop"
)

// stepRest is what of a step nothing changes once it has ended.
type stepRest struct {
	count        uint64 // of operations, after the first
	calls        uint64 // in Steps.calls
	failed       uint64
	todos        uint64 // in Steps.todos, plus 1; 0: none
	noCheckpoint uint64 // in Steps.texts
	world        worldMark
	began        []byte // of Step.Began, nBegan times: eight bytes of its key, its distance from the first operation
	nBegan       uint64
}

// What of a rest is written only where it is not what it mostly is.
const (
	restWorld        = 1 << iota // it is not that of the step before in the group
	restFailed                   // more than none
	restTodos                    // likewise
	restNoCheckpoint             // likewise
	restBegan                    // times the number of calls in Began
)

// append writes the rest of a step, with what it began, behind those of the steps
// before it in its group.
func (r *stepRest) append(dst []byte, began []Began, first uint64) []byte {
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

// lastWorld is the world of the last step of a group.
func lastWorld(data []byte) worldMark {
	var r stepRest
	for len(data) > 0 {
		data = r.next(data)
	}
	return r.world
}

// next makes of the rest of one step that of the next one, whose data begin
// with it, and returns what follows.
func (r *stepRest) next(data []byte) []byte {
	number := func() uint64 {
		n, size := binary.Uvarint(data)
		if size <= 0 {
			panic("orchestrator: a step cannot be read as it was written")
		}
		data = data[size:]
		return n
	}
	head := number()
	r.count, r.calls = number(), number()
	if head&restWorld != 0 {
		r.world, data = worldMark(binary.BigEndian.Uint64(data)), data[8:]
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
	for range r.nBegan {
		data = data[8:]
		number()
	}
	return data
}

// beganAfter returns what the step began whose first operation is first.
func (r *stepRest) beganAfter(first uint64) []Began {
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
