package state

import (
	"encoding/binary"
	"iter"

	"anamnesis/opstream/op"
)

// sumBlock is how many token counts one block of tokenSums holds.
const sumBlock = 256

// tokenSums are the token counts of a task's operations, and the sum of the first n of them. A
// count takes about two bytes. The zero value has none.
type tokenSums struct {
	blocks []tokenBlock // full ones
	tail   []byte       // of fewer than sumBlock counts, as varints
	before uint64       // sum of the full blocks
	total  uint64
	n      uint64
}

type tokenBlock struct {
	before uint64 // sum of those before it
	counts []byte // sumBlock varints
}

// add appends the count of the next operation.
func (t *tokenSums) add(tok uint64) {
	t.tail = binary.AppendUvarint(t.tail, tok)
	t.total += tok
	if t.n++; t.n%sumBlock == 0 {
		t.blocks = append(t.blocks, tokenBlock{t.before, append([]byte(nil), t.tail...)})
		t.tail, t.before = t.tail[:0], t.total
	}
}

// Tokens returns the size of a range of operations as the model saw them.
func (t *tokenSums) Tokens(r op.Range) int {
	last := min(r.Last, t.n)
	if r.First == 0 || r.First > last {
		return 0
	}
	return int(t.upTo(last) - t.upTo(r.First-1))
}

// RangeTokens returns the size of several ranges.
func (t *tokenSums) RangeTokens(rs []op.Range) int {
	n := 0
	for _, r := range rs {
		n += t.Tokens(r)
	}
	return n
}

// upTo returns the sum of the first n counts, at most all there are.
func (t *tokenSums) upTo(n uint64) uint64 {
	if n >= t.n {
		return t.total
	}
	b := tokenBlock{t.before, t.tail}
	if i := n / sumBlock; i < uint64(len(t.blocks)) {
		b = t.blocks[i]
	}
	sum, data := b.before, b.counts
	for range n % sumBlock {
		tok, size := binary.Uvarint(data)
		sum, data = sum+tok, data[size:]
	}
	return sum
}

// all returns the counts in order.
func (t *tokenSums) all() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for i := 0; i <= len(t.blocks); i++ {
			data := t.tail
			if i < len(t.blocks) {
				data = t.blocks[i].counts
			}
			for len(data) > 0 {
				tok, size := binary.Uvarint(data)
				if data = data[size:]; !yield(tok) {
					return
				}
			}
		}
	}
}
