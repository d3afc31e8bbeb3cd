package memory

import "math/rand/v2"

// source is everything random of the bench. It hands out numbers by name, so
// that no draw depends on how many were made before: the same question in the
// same task has the same answer in every arm and in every order of running.
type source struct{ seed uint64 }

// at is the source of a part: a task, a turn, a statement.
func (s source) at(name string, n int) source {
	const prime = 1099511628211 // FNV-1a's, 64 bits
	h := s.seed ^ 14695981039346656037
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return source{mix(h ^ mix(uint64(n)+0x9e3779b97f4a7c15))}
}

// mix is SplitMix64's finaliser: it spreads every bit over all of them,
// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// float is this source's one number in [0, 1).
func (s source) float() float64 { return float64(mix(s.seed)>>11) / (1 << 53) }

// chance is true with probability p.
func (s source) chance(p float64) bool { return s.float() < p }

// between is a number from lo to hi, both possible.
func (s source) between(lo, hi int) int { return lo + int(s.float()*float64(hi-lo+1)) }

// rand is a generator for things that need many numbers.
func (s source) rand() *rand.Rand { return rand.New(rand.NewPCG(s.seed, mix(s.seed))) }
