package wire

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Entry is what the index stores of a line.
type Entry struct {
	Off  int64  // where the line begins in its segment
	Size uint32 // bytes without the newline
}

// End is where the line after it begins, unless that begins a segment.
func (e *Entry) End() int64 { return e.Off + int64(e.Size) + 1 }

// Index maps seq to entries, of 16 bytes each. It needs its owner's lock.
type Index struct {
	list []Entry // that of seq is at seq-1
}

// Last is the highest seq indexed; 0 when there is none.
func (x *Index) Last() uint64 { return uint64(len(x.list)) }

// At returns the entry of a seq, 1 to Last.
func (x *Index) At(seq uint64) Entry { return x.list[seq-1] }

// Add appends the entry of the next seq.
func (x *Index) Add(e Entry) { x.list = append(x.list, e) }

// Snapshot returns the index up to a seq as it is now. It may be read while x
// grows or is truncated.
func (x *Index) Snapshot(last uint64) Index {
	s := *x
	n := min(last, x.Last())
	s.list = x.list[:n:n]
	return s
}

// Truncate forgets every seq above last. Entries that others may be reading are not changed.
func (x *Index) Truncate(last uint64) {
	if last < x.Last() {
		x.list = slices.Clone(x.list[:last])
	}
}

// SegmentOf returns the segment, by its first seq, that holds seq. segs is
// ascending.
func SegmentOf(segs []uint64, seq uint64) uint64 {
	i, _ := slices.BinarySearch(segs, seq+1)
	return segs[i-1]
}

// Encoded returns the sizes of the entries' lines as varints. Their offsets follow from these and
// from the segments.
func (x *Index) Encoded() (dst []byte) {
	for _, e := range x.list {
		dst = binary.AppendUvarint(dst, uint64(e.Size))
	}
	return dst
}

// DecodeSize decodes one line's size and returns the bytes it took.
func DecodeSize(buf []byte) (size uint32, n int, ok bool) {
	v, n := binary.Uvarint(buf)
	return uint32(v), n, n > 0 && v > 0 && v <= MaxLineBytes
}

// Differs returns an error for the first record of which two indexes disagree.
func (x *Index) Differs(from *Index) error {
	for seq := uint64(1); seq <= min(x.Last(), from.Last()); seq++ {
		if x.At(seq) != from.At(seq) {
			return fmt.Errorf("its index is wrong for record %d", seq)
		}
	}
	return nil
}
