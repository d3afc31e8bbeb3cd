package retrieval

import (
	"cmp"
	"math"
	"slices"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// MaxGroup is how many lessons one group holds.
const MaxGroup = 12

// evenly is added to the likeness of either part before their mean is taken, so that a weak likeness of
// one part does not take away all of the other's. It was chosen on testdata/groups/cards.tsv.
const evenly = 0.1

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

// FindGroups puts lessons together that resemble one another by at least atLeast, the most alike first. It
// compares each with each, so the caller bounds their number. Two lessons are as alike as the geometric mean
// of their troubles' and their remedies' resemblance in spelling: cards about one tool share much in one of
// the parts, cards that say one thing in both. Character n-grams are compared: they find what single words
// miss, inflected words, parts of names and single Chinese characters. A lesson is in one group at most, and
// a group holds by the mean over all its pairs, so that a chain of neighbours is none. Meanings are not
// compared: groups across languages are found by what both quote only. The same lessons produce the same
// groups in any order.
func FindGroups(lessons []Lesson, atLeast float64) []Group {
	lessons = slices.SortedFunc(slices.Values(lessons), func(a, b Lesson) int { return cmp.Compare(a.ID, b.ID) })
	df := make(map[uint64]int) // over whole lessons
	for _, l := range lessons {
		grams, _ := gramsIn(l.Trouble + "\n" + l.Remedy)
		for _, g := range grams {
			df[g]++
		}
	}
	vectors := make([][2][]weighed, len(lessons))
	likeness := make([][]float64, len(lessons))
	var pairs [][2]int
	for i, l := range lessons {
		vectors[i] = [2][]weighed{newVector(l.Trouble, df, len(lessons)), newVector(l.Remedy, df, len(lessons))}
		likeness[i] = make([]float64, len(lessons))
		for j := range i {
			trouble, remedy := cosine(vectors[i][0], vectors[j][0]), cosine(vectors[i][1], vectors[j][1])
			// What is less than half as alike as a group's mean counts nothing in it.
			if l := min(1, math.Sqrt((trouble+evenly)*(remedy+evenly))-evenly); l >= atLeast/2 {
				likeness[i][j], likeness[j][i] = l, l
			}
			if likeness[i][j] >= atLeast {
				pairs = append(pairs, [2]int{j, i})
			}
		}
	}
	slices.SortFunc(pairs, func(x, y [2]int) int {
		return cmp.Or(cmp.Compare(likeness[y[0]][y[1]], likeness[x[0]][x[1]]), slices.Compare(x[:], y[:]))
	})
	var out []Group
	for _, g := range joinPairs(pairs, likeness, atLeast) {
		found := Group{Likeness: meanOf(g, likeness)}
		for _, i := range g {
			found.IDs = append(found.IDs, lessons[i].ID)
		}
		out = append(out, found)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Likeness, a.Likeness), slices.Compare(a.IDs, b.IDs))
	})
	return out
}

func gramsIn(text string) (grams []uint64, counts []float64) {
	return lexical.Distinct(func(emit func(uint64)) { lexical.Grams(text, emit) })
}

// weighed is a term of a text with its weight.
type weighed struct {
	gram   uint64
	weight float64
}

// newVector weighs the character n-grams of a text, the rare ones most, to length 1. They are sorted.
func newVector(text string, df map[uint64]int, texts int) []weighed {
	grams, counts := gramsIn(text)
	damp(counts)
	v, length := make([]weighed, len(grams)), 0.0
	for k, g := range grams {
		w := counts[k] * math.Log(1+(float64(texts-df[g])+0.5)/(float64(df[g])+0.5))
		v[k], length = weighed{g, w}, length+w*w
	}
	for k := range v {
		v[k].weight /= max(math.Sqrt(length), math.SmallestNonzeroFloat32)
	}
	slices.SortFunc(v, func(a, b weighed) int { return cmp.Compare(a.gram, b.gram) })
	return v
}

func cosine(a, b []weighed) (sum float64) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].gram < b[0].gram:
			a = a[1:]
		case a[0].gram > b[0].gram:
			b = b[1:]
		default:
			sum += a[0].weight * b[0].weight
			a, b = a[1:], b[1:]
		}
	}
	return sum
}

// joinPairs puts together what is most alike first, as long as the mean over all pairs of the whole stays at
// least a likeness. Positions within a group are sorted.
func joinPairs(pairs [][2]int, likeness [][]float64, atLeast float64) (groups [][]int) {
	in := make(map[int]int) // the group of a lesson, in groups
	for _, p := range pairs {
		whole := p[:]
		for _, i := range p {
			if at, ok := in[i]; ok {
				whole = append(slices.Clone(whole), groups[at]...)
			}
		}
		slices.Sort(whole)
		whole = slices.Compact(whole)
		if len(whole) > MaxGroup || meanOf(whole, likeness) < atLeast {
			continue
		}
		for _, i := range whole {
			in[i] = len(groups)
		}
		groups = append(groups, whole)
	}
	var last [][]int // what was not joined with another
	for at, g := range groups {
		if in[g[0]] == at {
			last = append(last, g)
		}
	}
	return last
}

// meanOf is the mean likeness over the pairs of a group.
func meanOf(group []int, likeness [][]float64) float64 {
	sum := 0.0
	for i, a := range group {
		for _, b := range group[i+1:] {
			sum += likeness[a][b]
		}
	}
	return sum / float64(len(group)*(len(group)-1)/2)
}
