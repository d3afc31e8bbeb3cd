package opstream

import (
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"
)

const (
	// indexBlock is how many entries stand together. Finding one reads those
	// before it in its block.
	indexBlock = 256
	// indexChunk is how many blocks the index grows by, so that growing
	// never copies: one more op costs the same on a stream of any length.
	indexChunk = 64
	// maxIndexedKinds is how many distinct kinds the index holds by number;
	// the entries of further ones are marked unindexedKind.
	maxIndexedKinds = 1<<16 - 1
	unindexedKind   = 1<<16 - 1
	// maxIndexedBytes is the longest form of one line in the file's index:
	// four varints, of at most 32 bits each.
	maxIndexedBytes = 4 * binary.MaxVarintLen32
)

// indexEntry is what is known of a line without reading it again.
type indexEntry struct {
	off    int64  // where the line begins in its segment
	tokSum int64  // tok of this and all earlier lines
	size   uint32 // bytes without the newline
	step   int32
	kind   uint16 // position in index.kinds
}

// end is where the line after it begins, unless that begins a segment.
func (e *indexEntry) end() int64 { return e.off + int64(e.size) + 1 }

// indexed is a full block of entries, about 5 bytes each. It is never changed.
type indexed struct {
	before indexEntry // the last entry before them
	data   []byte     // see appendEncoded
}

// index maps seq to entries. It is built from envelopes and needs its owner's
// lock.
type index struct {
	chunks []*[indexChunk]indexed
	before indexEntry   // the last entry before the tail
	tail   []indexEntry // of the last block, at least one when there is any
	n      uint64
	begins []uint64 // the seqs that begin segments, ascending
	kinds  []string
	kindNo map[string]uint16
}

// last is the highest seq indexed; 0 when there is none.
func (x *index) last() uint64 { return x.n }

// at returns the entry of a seq, 1 to last. Those of the last block are found
// in no time, others by reading up to indexBlock entries.
func (x *index) at(seq uint64) indexEntry {
	for _, e := range x.from(seq) {
		return e
	}
	panic("opstream: no such seq in the index")
}

// from returns the entries from a seq on, in order.
func (x *index) from(seq uint64) iter.Seq2[uint64, indexEntry] {
	return func(yield func(uint64, indexEntry) bool) {
		packed := x.packed()
		at := (seq-1)/indexBlock*indexBlock + 1
		begin, _ := slices.BinarySearch(x.begins, at)
		begins := x.begins[begin:]
		for ; at <= packed*indexBlock; at += indexBlock {
			b := x.block(at / indexBlock)
			e, data := b.before, b.data
			for i := range uint64(indexBlock) {
				e.off = e.end()
				if len(begins) > 0 && begins[0] == at+i {
					e.off, begins = 0, begins[1:]
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

// next changes e, but for its place, into the entry that data begin with, and
// gives the bytes it took.
func (e *indexEntry) next(data []byte) int {
	n, ok := e.decode(data, unindexedKind)
	if !ok {
		panic("opstream: the index cannot read what it wrote")
	}
	return n
}

// packed is the number of blocks that are not in the tail. The tail stays
// whole until an entry comes that it has no room for.
func (x *index) packed() uint64 {
	if x.n == 0 {
		return 0
	}
	return (x.n - 1) / indexBlock
}

func (x *index) block(i uint64) *indexed { return &x.chunks[i/indexChunk][i%indexChunk] }

func (x *index) tokSum(seq uint64) int64 {
	if seq == 0 {
		return 0
	}
	return x.at(seq).tokSum
}

// add appends the entry of the next seq.
func (x *index) add(off int64, size int, e *envelope) {
	sum := x.tokSum(x.n) + int64(e.tok)
	x.put(indexEntry{off: off, tokSum: sum, size: uint32(size), step: int32(e.step), kind: x.number(e.kind)})
}

func (x *index) put(e indexEntry) {
	if len(x.tail) == indexBlock {
		x.pack()
	}
	if x.tail == nil {
		x.tail = make([]indexEntry, 0, indexBlock)
	}
	x.tail = append(x.tail, e)
	if x.n++; e.off == 0 {
		x.begins = append(x.begins, x.n)
	}
}

// pack makes a block of the tail.
func (x *index) pack() {
	at, b := x.packed(), indexed{before: x.before}
	var room [indexBlock * maxIndexedBytes]byte
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

// snapshot returns the index up to a seq as it is now. It may be read while x
// grows or is truncated.
func (x *index) snapshot(last uint64) index {
	s := *x
	s.chunks, s.tail, s.begins = slices.Clone(x.chunks), slices.Clone(x.tail), slices.Clone(x.begins)
	s.truncate(last)
	return s
}

// kindOf names an entry's kind; empty when it has no number.
func (x *index) kindOf(e indexEntry) string {
	if int(e.kind) >= len(x.kinds) {
		return ""
	}
	return x.kinds[e.kind]
}

// number returns a kind its number.
func (x *index) number(kind []byte) uint16 {
	if no, ok := x.kindNo[string(kind)]; ok {
		return no
	}
	if len(x.kinds) == maxIndexedKinds {
		return unindexedKind
	}
	if x.kindNo == nil {
		x.kindNo = map[string]uint16{}
	}
	no := uint16(len(x.kinds))
	x.kinds = append(x.kinds, string(kind))
	x.kindNo[string(kind)] = no
	return no
}

// truncate forgets every seq above last. The block it cuts becomes the tail.
// Chunks that others may be reading are not changed.
func (x *index) truncate(last uint64) {
	if last >= x.n {
		return
	}
	begins, _ := slices.BinarySearch(x.begins, last+1)
	x.begins = x.begins[:begins]
	was := x.packed()
	cut := index{n: last}
	packed := cut.packed()
	if packed == was {
		x.tail, x.n = x.tail[:last-packed*indexBlock], last
		return
	}
	tail := make([]indexEntry, 0, indexBlock)
	x.before = x.block(packed).before
	if last > 0 {
		for seq, e := range x.from(packed*indexBlock + 1) {
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

// ofKind lists the seqs of one kind, ascending.
func (x *index) ofKind(kind string) []uint64 {
	no, ok := x.kindNo[kind]
	if !ok || x.n == 0 {
		return nil
	}
	var out []uint64
	for seq, e := range x.from(1) {
		if e.kind == no {
			out = append(out, seq)
		}
	}
	return out
}

// appendEncoded appends the entry, but for its place, as varints: twice the
// number of its kind, plus 1 when its step is not that of the entry before;
// then the step's difference, signed, in that case; its size without the
// newline; its tok.
func (e *indexEntry) appendEncoded(dst []byte, before *indexEntry) []byte {
	if e.step == before.step {
		dst = binary.AppendUvarint(dst, uint64(e.kind)<<1)
	} else {
		dst = binary.AppendUvarint(dst, uint64(e.kind)<<1|1)
		dst = binary.AppendVarint(dst, int64(e.step)-int64(before.step))
	}
	dst = binary.AppendUvarint(dst, uint64(e.size))
	return binary.AppendUvarint(dst, uint64(e.tokSum-before.tokSum))
}

// decode changes the entry of one line into that of the next, but for its
// place, and returns the bytes it took.
func (e *indexEntry) decode(buf []byte, kinds int) (n int, ok bool) {
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
	if n += k; k <= 0 || size == 0 || size > maxLineBytes {
		return 0, false
	}
	e.size = uint32(size)
	tok, k := binary.Uvarint(buf[n:])
	if n += k; k <= 0 || tok > MaxNumber {
		return 0, false
	}
	e.tokSum += int64(tok)
	return n, true
}

// segmentOf returns the segment, by its first seq, that holds seq. segs is
// ascending.
func segmentOf(segs []uint64, seq uint64) uint64 {
	i := sort.Search(len(segs), func(i int) bool { return segs[i] > seq })
	return segs[i-1]
}

// appendEncoded appends the entries, each as indexEntry.appendEncoded writes it.
func (x *index) appendEncoded(dst []byte) []byte {
	const typical = 6
	if dst == nil {
		dst = make([]byte, 0, x.n*typical)
	}
	var before indexEntry
	for _, e := range x.from(1) {
		dst = e.appendEncoded(dst, &before)
		before = e
	}
	return dst
}

// differs says where an index is not what another one says of the same lines.
func (x *index) differs(from *index) error {
	if x.n == 0 || from.n == 0 {
		return nil
	}
	next, stop := iter.Pull2(from.from(1))
	defer stop()
	for seq, a := range x.from(1) {
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
