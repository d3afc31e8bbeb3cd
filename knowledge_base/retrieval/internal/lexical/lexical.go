// Package lexical finds texts by BM25: it cuts texts into words and character n-grams and
// keeps an inverted index of each in memory. It knows no vectors.
package lexical

import (
	"math"
	"strings"
)

// BM25's parameters. b is low because cards are short by design: a longer
// one says more rather than the same at length.
const (
	bm25K1 = 1.2
	wordsB = 0.5
	gramsB = 0.75
)

// Index is an inverted index ranked by Okapi BM25 (Robertson and Walker, 1994)
// with the idf that is never negative, log(1 + (N-df+0.5)/(df+0.5)). Its
// scores depend on what it holds, not on the order in which that came.
type Index[K comparable] struct {
	b        float64
	postings map[K][]posting
	lengths  []int32 // by slot
	Docs     int
	total    int64     // sum of lengths
	own      func(K) K // a copy of a term that holds on to no text
}

// posting is one text in which a term occurs, with its frequency.
type posting struct{ slot, tf int32 }

func NewWords() *Index[string] {
	return &Index[string]{b: wordsB, postings: make(map[string][]posting), own: strings.Clone}
}

func NewGrams() *Index[uint64] {
	return &Index[uint64]{b: gramsB, postings: make(map[uint64][]posting), own: func(g uint64) uint64 { return g }}
}

// Add enters the terms of a text under a slot beyond those before it.
func (x *Index[K]) Add(slot int, each func(emit func(K))) {
	length := int32(0)
	each(func(k K) {
		length++
		list, ok := x.postings[k]
		if n := len(list); n > 0 && list[n-1].slot == int32(slot) {
			list[n-1].tf++
			return
		}
		if !ok {
			k = x.own(k)
		}
		x.postings[k] = append(list, posting{int32(slot), 1})
	})
	for len(x.lengths) <= slot {
		x.lengths = append(x.lengths, 0)
	}
	x.lengths[slot] = length
	x.Docs++
	x.total += int64(length)
}

// leastDocs is the least number of texts that the idf assumes. In a smaller store every word is
// rare, and a word that all its texts share still means something.
const leastDocs = 64

// evidenceFlatness is by how many further documents without its terms a query's reach is
// computed: in a small store every word is rare.
const evidenceFlatness = 1000

// Score adds the query's terms, each with its weight, to scores (by slot).
// Terms are taken in the order given, so sums round the same way every time.
// reach is what a text of average length would get that has each of them once,
// in a store where every term is rare.
func (x *Index[K]) Score(terms []K, weight []float64, scores []float64) (reach float64) {
	if x.Docs == 0 || x.total == 0 {
		return 0
	}
	avg := float64(x.total) / float64(x.Docs)
	for i, k := range terms {
		list := x.postings[k]
		docs, with := float64(max(x.Docs, leastDocs)), float64(len(list))
		w := math.Log(1+(docs-with+0.5)/(with+0.5)) * weight[i] // the idf
		reach += weight[i] * math.Log((docs+evidenceFlatness)/(with+1))
		for _, p := range list {
			tf := float64(p.tf)
			norm := bm25K1 * (1 - x.b + x.b*float64(x.lengths[p.slot])/avg)
			scores[p.slot] += w * tf * (bm25K1 + 1) / (tf + norm)
		}
	}
	return reach
}

// Distinct collects the distinct terms of a query in order of appearance,
// with the number of times each occurs.
func Distinct[K comparable](each func(emit func(K))) (terms []K, counts []float64) {
	at := make(map[K]int)
	each(func(k K) {
		i, ok := at[k]
		if !ok {
			i = len(terms)
			at[k] = i
			terms = append(terms, k)
			counts = append(counts, 0)
		}
		counts[i]++
	})
	return terms, counts
}
