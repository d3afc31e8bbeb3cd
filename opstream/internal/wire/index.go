package wire

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"
)

const (
	// MaxIndexedKinds is how many distinct kinds the index holds by number;
	// the entries of further ones are marked unindexedKind.
	MaxIndexedKinds = 1<<16 - 1
	unindexedKind   = 1<<16 - 1
)

// Entry is what the index stores of a line.
type Entry struct {
	Off  int64  // where the line begins in its segment
	Size uint32 // bytes without the newline
	step int32
	kind uint16 // position in index.kinds
}

// End is where the line after it begins, unless that begins a segment.
func (e *Entry) End() int64 { return e.Off + int64(e.Size) + 1 }

// Index maps seq to entries, of 24 bytes each. It is built from envelopes and needs its owner's
// lock.
type Index struct {
	list   []Entry // that of seq is at seq-1
	Kinds  []string
	kindNo map[string]uint16
}

// Last is the highest seq indexed; 0 when there is none.
func (x *Index) Last() uint64 { return uint64(len(x.list)) }

// At returns the entry of a seq, 1 to Last.
func (x *Index) At(seq uint64) Entry { return x.list[seq-1] }

// From returns the entries from a seq on, in order.
func (x *Index) From(seq uint64) iter.Seq2[uint64, Entry] {
	return func(yield func(uint64, Entry) bool) {
		for ; seq <= x.Last(); seq++ {
			if !yield(seq, x.At(seq)) {
				return
			}
		}
	}
}

// Add appends the entry of the next seq.
func (x *Index) Add(off int64, size int, e *Envelope) {
	x.Put(Entry{Off: off, Size: uint32(size), step: int32(e.Step), kind: x.Number(e.Kind)})
}

func (x *Index) Put(e Entry) { x.list = append(x.list, e) }

// Snapshot returns the index up to a seq as it is now. It may be read while x
// grows or is truncated.
func (x *Index) Snapshot(last uint64) Index {
	s := *x
	n := min(last, x.Last())
	s.list = x.list[:n:n]
	return s
}

// kindOf names an entry's kind; empty when it has no number.
func (x *Index) kindOf(e Entry) string {
	if int(e.kind) >= len(x.Kinds) {
		return ""
	}
	return x.Kinds[e.kind]
}

// Number returns the number of a kind.
func (x *Index) Number(kind []byte) uint16 {
	if no, ok := x.kindNo[string(kind)]; ok {
		return no
	}
	if len(x.Kinds) == MaxIndexedKinds {
		return unindexedKind
	}
	if x.kindNo == nil {
		x.kindNo = map[string]uint16{}
	}
	no := uint16(len(x.Kinds))
	x.Kinds = append(x.Kinds, string(kind))
	x.kindNo[string(kind)] = no
	return no
}

// Truncate forgets every seq above last. Entries that others may be reading are not changed.
func (x *Index) Truncate(last uint64) {
	if last < x.Last() {
		x.list = slices.Clone(x.list[:last])
	}
}

// OfKind lists the seqs of one kind, ascending.
func (x *Index) OfKind(kind string) []uint64 {
	no, ok := x.kindNo[kind]
	if !ok {
		return nil
	}
	var out []uint64
	for seq, e := range x.From(1) {
		if e.kind == no {
			out = append(out, seq)
		}
	}
	return out
}

// appendEncoded appends the entry, except for its offset, as varints: twice the number of its
// kind, plus 1 if its step differs from the entry before; in that case the signed difference
// of the steps; then its size without the newline.
func (e *Entry) appendEncoded(dst []byte, before *Entry) []byte {
	if e.step == before.step {
		dst = binary.AppendUvarint(dst, uint64(e.kind)<<1)
	} else {
		dst = binary.AppendUvarint(dst, uint64(e.kind)<<1|1)
		dst = binary.AppendVarint(dst, int64(e.step)-int64(before.step))
	}
	return binary.AppendUvarint(dst, uint64(e.Size))
}

// Decode turns the entry of one line into that of the next, except for its offset, and returns
// the bytes it took.
func (e *Entry) Decode(buf []byte, kinds int) (n int, ok bool) {
	kind, k := binary.Uvarint(buf)
	if n = k; k <= 0 || (kind>>1 >= uint64(kinds) && kind>>1 != unindexedKind) {
		return 0, false
	}
	e.kind = uint16(kind >> 1)
	if kind&1 != 0 {
		step, k := binary.Varint(buf[n:])
		if n += k; k <= 0 || step < -MaxNumber || step > MaxNumber || step+int64(e.step) < 0 || step+int64(e.step) > MaxNumber {
			return 0, false
		}
		e.step += int32(step)
	}
	size, k := binary.Uvarint(buf[n:])
	if n += k; k <= 0 || size == 0 || size > MaxLineBytes {
		return 0, false
	}
	e.Size = uint32(size)
	return n, true
}

// SegmentOf returns the segment, by its first seq, that holds seq. segs is
// ascending.
func SegmentOf(segs []uint64, seq uint64) uint64 {
	i := sort.Search(len(segs), func(i int) bool { return segs[i] > seq })
	return segs[i-1]
}

// AppendEncoded appends the entries, each as Entry.appendEncoded writes it.
func (x *Index) AppendEncoded(dst []byte) []byte {
	const typical = 4
	if dst == nil {
		dst = make([]byte, 0, x.Last()*typical)
	}
	var before Entry
	for _, e := range x.From(1) {
		dst = e.appendEncoded(dst, &before)
		before = e
	}
	return dst
}

// Differs returns an error for the first record of which two indexes disagree.
func (x *Index) Differs(from *Index) error {
	for seq := uint64(1); seq <= min(x.Last(), from.Last()); seq++ {
		a, b := x.At(seq), from.At(seq)
		kindA, kindB := x.kindOf(a), from.kindOf(b)
		if a.kind, b.kind = 0, 0; a != b || kindA != kindB {
			return fmt.Errorf("its index is wrong for record %d", seq)
		}
	}
	return nil
}
