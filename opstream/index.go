package opstream

import "sort"

const (
	// indexChunk is how many entries the index grows by, so that growing
	// never copies: one more op costs the same on a stream of any length.
	indexChunk = 4096
	// maxIndexedKinds is how many distinct kinds the index holds by number;
	// the entries of further ones are marked unindexedKind.
	maxIndexedKinds = 1<<16 - 1
	unindexedKind   = 1<<16 - 1
)

// indexEntry is what is known of a line without reading it again: 32 bytes.
type indexEntry struct {
	off    int64  // where the line begins in its segment
	tokSum int64  // tok of this and all earlier lines
	size   uint32 // bytes without the newline
	step   int32
	kind   uint16 // position in index.kinds
}

// index maps seq to entries. It is built from envelopes and needs its owner's
// lock.
type index struct {
	chunks []*[indexChunk]indexEntry
	n      uint64
	kinds  []string
	kindNo map[string]uint16
}

// last is the highest seq indexed; 0 when there is none.
func (x *index) last() uint64 { return x.n }

func (x *index) at(seq uint64) indexEntry {
	return x.chunks[(seq-1)/indexChunk][(seq-1)%indexChunk]
}

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
	if x.n%indexChunk == 0 {
		x.chunks = append(x.chunks, new([indexChunk]indexEntry))
	}
	x.chunks[x.n/indexChunk][x.n%indexChunk] = e
	x.n++
}

// kindOf names an entry's kind; empty when it has no number.
func (x *index) kindOf(e indexEntry) string {
	if int(e.kind) >= len(x.kinds) {
		return ""
	}
	return x.kinds[e.kind]
}

// number gives a kind its number.
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

// truncate forgets every seq above last.
func (x *index) truncate(last uint64) {
	x.n = min(x.n, last)
	x.chunks = x.chunks[:(x.n+indexChunk-1)/indexChunk]
}

// ofKind lists the seqs of one kind, ascending.
func (x *index) ofKind(kind string) []uint64 {
	no, ok := x.kindNo[kind]
	if !ok {
		return nil
	}
	var out []uint64
	for seq := uint64(1); seq <= x.n; seq++ {
		if x.at(seq).kind == no {
			out = append(out, seq)
		}
	}
	return out
}

// segmentOf gives the segment, by its first seq, that holds seq. segs is
// ascending.
func segmentOf(segs []uint64, seq uint64) uint64 {
	i := sort.Search(len(segs), func(i int) bool { return segs[i] > seq })
	return segs[i-1]
}
