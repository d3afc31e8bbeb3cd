package wire

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"
)

const (
	// indexBlock is how many entries one block packs. Finding an entry decodes those before it
	// in its block.
	indexBlock = 256
	// indexChunk is how many blocks the index grows by. Growing never copies blocks, so that
	// one more op costs the same on a stream of any length.
	indexChunk = 64
	// MaxIndexedKinds is how many distinct kinds the index holds by number;
	// the entries of further ones are marked unindexedKind.
	MaxIndexedKinds = 1<<16 - 1
	unindexedKind   = 1<<16 - 1
	// MaxIndexedBytes is the longest form of one line in the file's index:
	// three varints, of at most 32 bits each.
	MaxIndexedBytes = 3 * binary.MaxVarintLen32
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

// indexed is a full block of entries, about 4 bytes each. It is never changed.
type indexed struct {
	before Entry  // the last entry before them
	data   []byte // see AppendEncoded
}

// Index maps seq to entries. It is built from envelopes and needs its owner's
// lock.
type Index struct {
	chunks []*[indexChunk]indexed
	before Entry   // the last entry before the tail
	tail   []Entry // of the last block, at least one when there is any
	n      uint64
	begins []uint64 // the seqs that begin segments, ascending
	Kinds  []string
	kindNo map[string]uint16
}

// Last is the highest seq indexed; 0 when there is none.
func (x *Index) Last() uint64 { return x.n }

// At returns the entry of a seq, 1 to Last. Entries of the last block are found at once,
// others by decoding up to indexBlock entries.
func (x *Index) At(seq uint64) Entry {
	for _, e := range x.From(seq) {
		return e
	}
	panic("opstream: no such seq in the index")
}

// From returns the entries from a seq on, in order.
func (x *Index) From(seq uint64) iter.Seq2[uint64, Entry] {
	return func(yield func(uint64, Entry) bool) {
		packed := x.packed()
		at := (seq-1)/indexBlock*indexBlock + 1
		begin, _ := slices.BinarySearch(x.begins, at)
		begins := x.begins[begin:]
		for ; at <= packed*indexBlock; at += indexBlock {
			b := x.block(at / indexBlock)
			e, data := b.before, b.data
			for i := range uint64(indexBlock) {
				e.Off = e.End()
				if len(begins) > 0 && begins[0] == at+i {
					e.Off, begins = 0, begins[1:]
				}
				data = data[e.next(data):]
				if at+i >= seq && !yield(at+i, e) {
					return
				}
			}
		}
		first := packed*indexBlock + 1
		for seq = max(seq, first); seq <= x.n; seq++ {
			if !yield(seq, x.tail[seq-first]) {
				return
			}
		}
	}
}

// next decodes the next entry from data into e, except for its offset, and returns the bytes
// it took.
func (e *Entry) next(data []byte) int {
	n, ok := e.Decode(data, unindexedKind)
	if !ok {
		panic("opstream: the index cannot read what it wrote")
	}
	return n
}

// packed is the number of full blocks outside the tail. The tail is packed only when an entry
// no longer fits.
func (x *Index) packed() uint64 {
	if x.n == 0 {
		return 0
	}
	return (x.n - 1) / indexBlock
}

func (x *Index) block(i uint64) *indexed { return &x.chunks[i/indexChunk][i%indexChunk] }

// Add appends the entry of the next seq.
func (x *Index) Add(off int64, size int, e *Envelope) {
	x.Put(Entry{Off: off, Size: uint32(size), step: int32(e.Step), kind: x.Number(e.Kind)})
}

func (x *Index) Put(e Entry) {
	if len(x.tail) == indexBlock {
		x.pack()
	}
	if x.tail == nil {
		x.tail = make([]Entry, 0, indexBlock)
	}
	x.tail = append(x.tail, e)
	if x.n++; e.Off == 0 {
		x.begins = append(x.begins, x.n)
	}
}

// pack makes a block of the tail.
func (x *Index) pack() {
	at, b := x.packed(), indexed{before: x.before}
	var room [indexBlock * MaxIndexedBytes]byte
	data, was := room[:0], b.before
	for i := range x.tail {
		e := x.tail[i]
		data = e.appendEncoded(data, &was)
		was = e
	}
	b.data = slices.Clone(data)
	if at%indexChunk == 0 {
		x.chunks = append(x.chunks, new([indexChunk]indexed))
	}
	*x.block(at) = b
	x.before, x.tail = x.tail[indexBlock-1], x.tail[:0]
}

// Snapshot returns the index up to a seq as it is now. It may be read while x
// grows or is truncated.
func (x *Index) Snapshot(last uint64) Index {
	s := *x
	s.chunks, s.tail, s.begins = slices.Clone(x.chunks), slices.Clone(x.tail), slices.Clone(x.begins)
	s.Truncate(last)
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

// Truncate forgets every seq above last. The block that it cuts becomes the tail. Chunks that
// others may be reading are not changed.
func (x *Index) Truncate(last uint64) {
	if last >= x.n {
		return
	}
	begins, _ := slices.BinarySearch(x.begins, last+1)
	x.begins = x.begins[:begins]
	was := x.packed()
	cut := Index{n: last}
	packed := cut.packed()
	if packed == was {
		x.tail, x.n = x.tail[:last-packed*indexBlock], last
		return
	}
	tail := make([]Entry, 0, indexBlock)
	x.before = x.block(packed).before
	if last > 0 {
		for seq, e := range x.From(packed*indexBlock + 1) {
			if seq > last {
				break
			}
			tail = append(tail, e)
		}
	}
	x.tail, x.n = tail, last
	x.chunks = slices.Clone(x.chunks[:(packed+indexChunk-1)/indexChunk])
	if i := packed / indexChunk; packed%indexChunk != 0 {
		chunk := *x.chunks[i]
		clear(chunk[packed%indexChunk:])
		x.chunks[i] = &chunk
	}
}

// OfKind lists the seqs of one kind, ascending.
func (x *Index) OfKind(kind string) []uint64 {
	no, ok := x.kindNo[kind]
	if !ok || x.n == 0 {
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
		dst = make([]byte, 0, x.n*typical)
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
	if x.n == 0 || from.n == 0 {
		return nil
	}
	next, stop := iter.Pull2(from.From(1))
	defer stop()
	for seq, a := range x.From(1) {
		_, b, more := next()
		if !more {
			break
		}
		kindA, kindB := x.kindOf(a), from.kindOf(b)
		if a.kind, b.kind = 0, 0; a != b || kindA != kindB {
			return fmt.Errorf("its index is wrong for record %d", seq)
		}
	}
	return nil
}
