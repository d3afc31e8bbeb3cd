package redact

import (
	"cmp"
	"slices"
)

// wordSet finds words of at least two bytes in a text. It compares ASCII letters without case. A
// word is identified by its index.
type wordSet struct {
	words []string // in lower case
	// heads leads to the words with a key, each of which leads to the next one; 0: no more. At most
	// places of a text no word has the key, which makes a search fast.
	heads   [1 << (3 * keyBits)]int32
	entries []entry
}

// entry is a word in the list of a key.
type entry struct{ word, next int32 }

const keyBits = 5

// wordKey returns the low bits of three bytes. Upper and lower case differ in a higher one.
func wordKey(a, b, c byte) int {
	const mask = 1<<keyBits - 1
	return int(a&mask)<<(2*keyBits) | int(b&mask)<<keyBits | int(c&mask)
}

func newWordSet(words []string) *wordSet {
	s := &wordSet{entries: make([]entry, 1, len(words)+1)}
	add := func(id, key int) {
		s.entries = append(s.entries, entry{int32(id), s.heads[key]})
		s.heads[key] = int32(len(s.entries) - 1)
	}
	for id, w := range words {
		w = lowerASCII(w)
		s.words = append(s.words, w)
		if len(w) > 2 {
			add(id, wordKey(w[0], w[1], w[2]))
			continue
		}
		for c := range 1 << keyBits { // any byte may follow
			add(id, wordKey(w[0], w[1], byte(c)))
		}
	}
	return s
}

// each calls visit for each word that occurs in a text, with the end's offset, in the order of the
// ends; of words with the same end the longest comes first. It returns the length of the longest
// prefix of a word that ends the text.
func (s *wordSet) each(text string, visit func(word, end int)) (partial int) {
	type hit struct{ word, end int }
	var hits []hit
	compare := func(i, id int) {
		n := commonPrefix(text[i:], s.words[id])
		if n == len(s.words[id]) {
			hits = append(hits, hit{id, i + n})
		}
		if i+n == len(text) {
			partial = max(partial, n)
		}
	}
	for i := range max(0, len(text)-2) {
		for at := s.heads[wordKey(text[i], text[i+1], text[i+2])]; at != 0; at = s.entries[at].next {
			compare(i, int(s.entries[at].word))
		}
	}
	// The last two bytes are too few for a key.
	for i := max(0, len(text)-2); i < len(text); i++ {
		for id := range s.words {
			compare(i, id)
		}
	}
	slices.SortFunc(hits, func(a, b hit) int {
		return cmp.Or(a.end-b.end, len(s.words[b.word])-len(s.words[a.word]), a.word-b.word)
	})
	for _, h := range hits {
		visit(h.word, h.end)
	}
	return partial
}

// commonPrefix returns how many bytes of a text agree with a word in lower case.
func commonPrefix(text, word string) (n int) {
	for n < len(text) && n < len(word) && lower(text[n]) == word[n] {
		n++
	}
	return n
}
