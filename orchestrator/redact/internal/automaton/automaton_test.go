package automaton

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// hit is a word that ends at an offset.
type hit struct{ word, end int }

// TestEach: an automaton finds what a search for each word by itself finds, in the same order.
func TestEach(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab]{1,5}`), 1, 8, rapid.ID).Draw(t, "words")
		text := rapid.StringMatching(`[abABc]{20,60}`).Draw(t, "text")
		var want, got []hit
		partial := 0
		for end := range len(text) + 1 {
			before := strings.ToLower(text[:end])
			var ending []hit
			for i, w := range words {
				if strings.HasSuffix(before, w) {
					ending = append(ending, hit{i, end})
				}
			}
			slices.SortFunc(ending, func(x, y hit) int { return len(words[y.word]) - len(words[x.word]) })
			want = append(want, ending...)
		}
		for _, w := range words {
			for n := range len(w) + 1 {
				if strings.HasSuffix(strings.ToLower(text), w[:n]) {
					partial = max(partial, n)
				}
			}
		}
		rest := New(words).Each(text, func(word, end int) { got = append(got, hit{word, end}) })
		if !slices.Equal(got, want) || rest != partial {
			t.Fatalf("%q in %q: %v and a prefix of %d bytes, want %v and %d", words, text, got, rest, want, partial)
		}
	})
}
