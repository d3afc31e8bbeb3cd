package redact

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// wordHit is a word that ends at an offset.
type wordHit struct{ word, end int }

// TestWordSet: a set finds what a search for each word by itself finds, in the same order.
func TestWordSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab]{2,5}`), 1, 8, rapid.ID).Draw(t, "words")
		text := rapid.StringMatching(`[abABc]{20,60}`).Draw(t, "text")
		var want, got []wordHit
		partial := 0
		for end := range len(text) + 1 {
			before := strings.ToLower(text[:end])
			var ending []wordHit
			for i, w := range words {
				if strings.HasSuffix(before, w) {
					ending = append(ending, wordHit{i, end})
				}
			}
			slices.SortFunc(ending, func(x, y wordHit) int { return len(words[y.word]) - len(words[x.word]) })
			want = append(want, ending...)
		}
		for _, w := range words {
			for n := range len(w) + 1 {
				if strings.HasSuffix(strings.ToLower(text), w[:n]) {
					partial = max(partial, n)
				}
			}
		}
		rest := newWordSet(words).each(text, func(word, end int) { got = append(got, wordHit{word, end}) })
		if !slices.Equal(got, want) || rest != partial {
			t.Fatalf("%q in %q: %v and a prefix of %d bytes, want %v and %d", words, text, got, rest, want, partial)
		}
	})
}
