package state

import "anamnesis/opstream/op"

// tokenSums holds the token counts of a task's operations as sums, eight bytes for each: Sums[i]
// is that of the first i+1.
type tokenSums struct {
	Sums []uint64
}

func (t *tokenSums) add(tok uint64) { t.Sums = append(t.Sums, t.upTo(uint64(len(t.Sums)))+tok) }

func (t *tokenSums) upTo(n uint64) uint64 {
	if n == 0 {
		return 0
	}
	return t.Sums[n-1]
}

// Tokens returns the size of a range of operations as the model saw them.
func (t *tokenSums) Tokens(r op.Range) int {
	last := min(r.Last, uint64(len(t.Sums)))
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
