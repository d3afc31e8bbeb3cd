package retrieval

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// Limits of [FindGroups].
const (
	// MaxLessons is how many texts are compared with one another.
	MaxLessons = 50_000
	// MaxGroup is how many lessons one group holds.
	MaxGroup = 12
	// maxAkin is how many pairs are kept of one lesson, the most alike.
	maxAkin = 64
)

// evenly is added to the likeness of either part before their mean is taken, so that a weak likeness of
// one part does not take away all of the other's. It was chosen on testdata/groups/cards.tsv.
const evenly = 0.1

// WideLikeness is a bound of likeness at which 12 of 29 groups in testdata/groups are wrong: it is for
// those who look at each group.
const WideLikeness = 0.12

// Lesson is a text in the two parts that make it one: what goes wrong, and what
// is to be done.
type Lesson struct {
	ID, Trouble, Remedy string
}

// Group is lessons that probably say one thing about different places.
type Group struct {
	IDs []string // sorted
	// Likeness is the mean over its pairs, 0 to 1.
	Likeness float64
}

// FindGroups puts lessons together that resemble one another by at least
// atLeast, the most alike first. Two lessons are as alike as the
// geometric mean of their troubles' and their remedies' resemblance in spelling:
// cards about one tool share much in one of the parts, cards that say one thing
// in both. Character n-grams are compared: they find what single words miss, inflected
// words, parts of names and single Chinese characters. A lesson is in one group at most, and a group holds
// by the mean over all its pairs, so that a chain of neighbours is none. Meanings
// are not compared: groups across languages are found by what both quote only. The same lessons produce the same groups in any order.
func FindGroups(ctx context.Context, lessons []Lesson, atLeast float64) ([]Group, error) {
	if len(lessons) > MaxLessons {
		return nil, fmt.Errorf("find groups: %d lessons, at most %d are compared", len(lessons), MaxLessons)
	}
	lessons = slices.SortedFunc(slices.Values(lessons), func(a, b Lesson) int { return cmp.Compare(a.ID, b.ID) })
	pairs, err := alikePairs(ctx, lessons, atLeast/2)
	if err != nil {
		return nil, fmt.Errorf("find groups: %w", err)
	}
	var out []Group
	for _, members := range joinPairs(pairs, atLeast) {
		g := Group{Likeness: members.likeness}
		for _, i := range members.at {
			g.IDs = append(g.IDs, lessons[i].ID)
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Likeness, a.Likeness), slices.Compare(a.IDs, b.IDs))
	})
	return out, nil
}

// part is one part of all lessons: what each weighs for each of its terms, to
// length 1, and for each term the lessons that have it.
type part struct {
	terms   [][]weighed // by lesson
	lessons [][]weighed // by term
}

// weighed is a lesson or a term with a weight.
type weighed struct {
	at     int32
	weight float32
}

// newPart weighs texts by their character n-grams; df and number are over whole lessons.
func newPart(texts []string, number map[uint64]int32, df []int) *part {
	p := &part{terms: make([][]weighed, len(texts)), lessons: make([][]weighed, len(number))}
	for i, text := range texts {
		grams, counts := lexical.Distinct(func(emit func(uint64)) { lexical.Grams(text, emit) })
		damp(counts)
		length := 0.0
		for k, g := range grams {
			n := number[g]
			w := counts[k] * math.Log(1+(float64(len(texts)-df[n])+0.5)/(float64(df[n])+0.5))
			length += w * w
			p.terms[i] = append(p.terms[i], weighed{n, float32(w)})
		}
		for k := range p.terms[i] {
			t := &p.terms[i][k]
			t.weight /= float32(max(math.Sqrt(length), math.SmallestNonzeroFloat32))
			p.lessons[t.at] = append(p.lessons[t.at], weighed{int32(i), t.weight})
		}
	}
	return p
}

// like adds the cosine of lesson i with each to out.
func (p *part) like(i int, out []float64) {
	for _, t := range p.terms[i] {
		for _, l := range p.lessons[t.at] {
			out[l.at] += float64(t.weight) * float64(l.weight)
		}
	}
}

// alike is a pair of lessons, a before b.
type alike struct {
	a, b     int32
	likeness float64
}

// alikePairs returns the pairs of at least a likeness, of each lesson the
// maxAkin best.
func alikePairs(ctx context.Context, lessons []Lesson, atLeast float64) ([]alike, error) {
	number := make(map[uint64]int32)
	var df []int
	troubles, remedies := make([]string, len(lessons)), make([]string, len(lessons))
	for i, l := range lessons {
		troubles[i], remedies[i] = l.Trouble, l.Remedy
		grams, _ := lexical.Distinct(func(emit func(uint64)) { lexical.Grams(l.Trouble+"\n"+l.Remedy, emit) })
		for _, g := range grams {
			n, ok := number[g]
			if !ok {
				n = int32(len(df))
				number[g], df = n, append(df, 0)
			}
			df[n]++
		}
	}
	trouble, remedy := newPart(troubles, number, df), newPart(remedies, number, df)
	rows := make([][]alike, len(lessons))
	spare := sync.Pool{New: func() any { s := make([]float64, 2*len(lessons)); return &s }}
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	compare := func(i int) {
		s := spare.Get().(*[]float64)
		defer spare.Put(s)
		clear(*s)
		inTrouble, inRemedy := (*s)[:len(lessons)], (*s)[len(lessons):]
		trouble.like(i, inTrouble)
		remedy.like(i, inRemedy)
		for j := i + 1; j < len(lessons); j++ {
			if l := min(1, math.Sqrt((inTrouble[j]+evenly)*(inRemedy[j]+evenly))-evenly); l >= atLeast {
				rows[i] = append(rows[i], alike{int32(i), int32(j), l})
			}
		}
		sortAlike(rows[i])
		rows[i] = rows[i][:min(maxAkin, len(rows[i]))]
	}
	for i := 0; i < len(lessons) && ctx.Err() == nil; i++ {
		group.Go(func() error { compare(i); return nil })
	}
	_ = group.Wait() // no comparison fails
	pairs := slices.Concat(rows...)
	sortAlike(pairs)
	return pairs, ctx.Err()
}

func sortAlike(pairs []alike) {
	slices.SortFunc(pairs, func(x, y alike) int {
		return cmp.Or(cmp.Compare(y.likeness, x.likeness), cmp.Compare(x.a, y.a), cmp.Compare(x.b, y.b))
	})
}

// cluster is a group being made, of positions in ascending order.
type cluster struct {
	at       []int32
	likeness float64
}

// joinPairs puts together what is most alike first, as long as the mean over
// all pairs of the whole stays at least a likeness.
func joinPairs(pairs []alike, atLeast float64) []*cluster {
	like := make(map[[2]int32]float64, len(pairs))
	for _, p := range pairs {
		like[[2]int32{p.a, p.b}] = p.likeness
	}
	mean := func(at []int32) float64 {
		sum := 0.0
		for i, a := range at {
			for _, b := range at[i+1:] {
				sum += like[[2]int32{a, b}]
			}
		}
		return sum / float64(len(at)*(len(at)-1)/2)
	}
	of := make(map[int32]*cluster)
	for _, p := range pairs {
		a, b := of[p.a], of[p.b]
		if p.likeness < atLeast {
			break
		}
		if a != nil && a == b {
			continue
		}
		at := []int32{p.a}
		if a != nil {
			at = slices.Clone(a.at)
		}
		if b != nil {
			at = append(at, b.at...)
		} else {
			at = append(at, p.b)
		}
		slices.Sort(at)
		if m := mean(at); len(at) <= MaxGroup && m >= atLeast {
			c := &cluster{at, m}
			for _, i := range at {
				of[i] = c
			}
		}
	}
	seen := make(map[*cluster]bool)
	for _, c := range of {
		seen[c] = true
	}
	return slices.Collect(maps.Keys(seen)) // the caller sorts
}
