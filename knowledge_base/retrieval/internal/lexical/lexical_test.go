package lexical

import (
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// formula is BM25 by the book, over texts by slot.
func formula(b float64, texts map[int][]string, query []string, weight []float64) []float64 {
	long := 0
	for _, text := range texts {
		long += len(text)
	}
	out := make([]float64, bm25Slots)
	n := float64(len(texts))
	for i, term := range query {
		counts, df := make(map[int]float64), 0.0
		for slot, text := range texts {
			for _, w := range text {
				if w == term {
					counts[slot]++
				}
			}
			if counts[slot] > 0 {
				df++
			}
		}
		idf := math.Log(1 + (max(n, leastDocs)-df+0.5)/(df+0.5))
		for slot, tf := range counts {
			if tf > 0 {
				norm := bm25K1 * (1 - b + b*float64(len(texts[slot]))/(float64(long)/n))
				out[slot] += idf * weight[i] * tf * (bm25K1 + 1) / (tf + norm)
			}
		}
	}
	return out
}

const bm25Slots = 20

// TestBM25IsTheFormula: whatever texts come and
// however often their terms occur, scores are those of the formula, to the bit.
func TestBM25IsTheFormula(t *testing.T) {
	word := rapid.SampledFrom(strings.Fields("a b c d e f g h i j k l"))
	each := func(text []string) func(func(string)) {
		return func(emit func(string)) {
			for _, w := range text {
				emit(w)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := NewWords()
		texts := make(map[int][]string)
		for slot := range rapid.IntRange(1, bm25Slots).Draw(t, "texts") {
			texts[slot] = rapid.SliceOfN(word, 0, 8).Draw(t, "text")
			x.Add(slot, each(texts[slot]))
			query := rapid.SliceOfNDistinct(word, 0, 5, func(w string) string { return w }).Draw(t, "query")
			weight := make([]float64, len(query))
			for i := range weight {
				weight[i] = float64(i + 1)
			}
			got := make([]float64, bm25Slots)
			x.Score(query, weight, got)
			if want := formula(wordsB, texts, query, weight); !slices.Equal(got, want) {
				t.Fatalf("%q in %v: %v, want %v", query, texts, got, want)
			}
		}
	})
}

// TestReach: what a query can reach at most; nothing in a store that says nothing.
func TestReach(t *testing.T) {
	emit := func(words ...string) func(func(string)) {
		return func(emit func(string)) {
			for _, w := range words {
				emit(w)
			}
		}
	}
	terms, counts := Distinct(emit("a", "b", "a"))
	if !slices.Equal(terms, []string{"a", "b"}) || !slices.Equal(counts, []float64{2, 1}) {
		t.Errorf("%q, %v", terms, counts)
	}
	x := NewWords()
	scores := make([]float64, 2)
	if reach := x.Score(terms, counts, scores); reach != 0 {
		t.Errorf("no text: %v", reach)
	}
	x.Add(0, emit())
	if reach := x.Score(terms, counts, scores); reach != 0 || scores[0] != 0 {
		t.Errorf("an empty text: %v, %v", reach, scores)
	}
	x.Add(1, emit("a"))
	if reach, want := x.Score(terms, counts, scores), 2*math.Log(1064.0/2)+math.Log(1064); math.Abs(reach-want) > 1e-9 {
		t.Errorf("reach %v, want %v", reach, want)
	}
}
