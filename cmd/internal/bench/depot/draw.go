// Package depot is a simulated project to be repaired: a sequence of decisions whose
// wrong options are dead ends that show only after some steps. It runs inside the
// process or as commands of its own. The rules are in docs/design/bench-memory.md.
package depot

import "math/rand/v2"

// Source is the source of every random number of a bench. Numbers are drawn by name, so
// that no draw depends on how many were made before: the same draw of the same task has
// the same result in every arm and in every order of running.
type Source struct{ Seed uint64 }

// At returns the source of a part: a task, a turn, a statement.
func (s Source) At(name string, n int) Source {
	const prime = 1099511628211 // FNV-1a's, 64 bits
	h := s.Seed ^ 14695981039346656037
	for i := range len(name) {
		h = (h ^ uint64(name[i])) * prime
	}
	return Source{mix(h ^ mix(uint64(n)+0x9e3779b97f4a7c15))}
}

// mix is SplitMix64's finaliser: it spreads every bit over all of them,
// Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Float returns the source's one number in [0, 1).
func (s Source) Float() float64 { return float64(mix(s.Seed)>>11) / (1 << 53) }

// Chance is true with probability p.
func (s Source) Chance(p float64) bool { return s.Float() < p }

// Between returns a number from lo to hi, both included.
func (s Source) Between(lo, hi int) int { return lo + int(s.Float()*float64(hi-lo+1)) }

// Rand returns a generator for what needs many numbers.
func (s Source) Rand() *rand.Rand { return rand.New(rand.NewPCG(s.Seed, mix(s.Seed))) }
