package replay

import (
	"math/bits"
	"sort"
)

// Rounds and seed of the data set's bootstrap.
const (
	bootstrapRounds = 1000
	bootstrapSeed   = 7
)

// Interval is a 95 % interval.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// bootstrap resamples whole groups, in the order of their first value, and
// returns the interval of the mean.
func bootstrap(groups []string, values []float64) Interval {
	type sum struct{ total, n float64 }
	index := map[string]int{}
	var sums []sum
	for i, g := range groups {
		at, ok := index[g]
		if !ok {
			at = len(sums)
			index[g] = at
			sums = append(sums, sum{})
		}
		sums[at].total += values[i]
		sums[at].n++
	}
	if len(sums) == 0 {
		return Interval{}
	}
	rnd := newTwister(bootstrapSeed)
	means := make([]float64, bootstrapRounds)
	for r := range means {
		var s sum
		for range sums {
			g := sums[rnd.intN(len(sums))]
			s.total += g.total
			s.n += g.n
		}
		means[r] = s.total / max(1, s.n)
	}
	sort.Float64s(means)
	return Interval{Low: means[bootstrapRounds*25/1000], High: means[bootstrapRounds*975/1000]}
}

// twister is MT19937 (Matsumoto and Nishimura 1998), seeded as Python's random
// does, so that the intervals agree with the data set's judge.
type twister struct {
	state [624]uint32
	next  int
}

func newTwister(seed uint32) *twister {
	t := &twister{next: 624}
	s := &t.state
	s[0] = 19650218
	for i := uint32(1); i < 624; i++ {
		s[i] = 1812433253*(s[i-1]^s[i-1]>>30) + i
	}
	i := uint32(1)
	step := func(factor, add uint32) {
		s[i] = (s[i] ^ (s[i-1]^s[i-1]>>30)*factor) + add
		if i++; i == 624 {
			s[0], i = s[623], 1
		}
	}
	for range 624 {
		step(1664525, seed)
	}
	for range 623 {
		step(1566083941, -i)
	}
	s[0] = 1 << 31
	return t
}

func (t *twister) uint32() uint32 {
	s := &t.state
	if t.next == 624 {
		for i := range s {
			y := s[i]&(1<<31) | s[(i+1)%624]&(1<<31-1)
			s[i] = s[(i+397)%624] ^ y>>1 ^ -(y&1)&0x9908b0df
		}
		t.next = 0
	}
	y := s[t.next]
	t.next++
	y ^= y >> 11
	y ^= y << 7 & 0x9d2c5680
	y ^= y << 15 & 0xefc60000
	return y ^ y>>18
}

// intN returns a number from 0 to n-1.
func (t *twister) intN(n int) int {
	for {
		if v := int(t.uint32() >> (32 - bits.Len(uint(n)))); v < n {
			return v
		}
	}
}
