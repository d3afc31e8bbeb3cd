package retrieval

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// lexicalIndex holds n documents made from the public sets by repetition, each
// a little different. It has no vectors.
func lexicalIndex(b *testing.B, n int) (*Index, *evalData) {
	b.Helper()
	set, err := readSet(filepath.Join(benchData(b), "cosqa"))
	if err != nil {
		b.Fatal(err)
	}
	texts := make(map[string]string)
	for i := range n {
		d := set.Docs[i%len(set.Docs)]
		texts[fmt.Sprintf("d%06d", i)] = fmt.Sprintf("%s %d\n%s", d.Title, i, d.Text)
	}
	return filled(b, nil, texts), set
}

// benchIndex is lexicalIndex with vectors.
func benchIndex(b *testing.B, n int) (*Index, *evalData) {
	b.Helper()
	begin := time.Now()
	x, set := lexicalIndex(b, n)
	lexical := time.Since(begin)
	if err := x.Refresh(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(lexical.Seconds(), "lexical-s")
	b.ReportMetric((time.Since(begin) - lexical).Seconds(), "vectors-s")
	return x, set
}

// BenchmarkSearch10k measures one query over 10,000 cards.
func BenchmarkSearch10k(b *testing.B) {
	x, set := benchIndex(b, 10_000)
	b.Run("hybrid", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, _, err := x.Search(b.Context(), Query{Text: set.Queries[i%len(set.Queries)].Text, K: 10}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkLexical10k measures what the two inverted indexes take of a query
// over 10,000 cards.
func BenchmarkLexical10k(b *testing.B) {
	x, set := lexicalIndex(b, 10_000)
	s := newScratch(len(x.docs))
	for i := 0; b.Loop(); i++ {
		text := set.Queries[i%len(set.Queries)].Text
		terms, counts := lexical.Distinct(func(emit func(string)) { lexical.Words(text, emit) })
		x.words.Score(terms, counts, s.words)
		codes, times := lexical.Distinct(func(emit func(uint64)) { lexical.Grams(text, emit) })
		x.grams.Score(codes, times, s.grams)
	}
}
