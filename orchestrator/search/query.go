package search

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/retrieval"
)

// ErrNoWords: a query has nothing that could be looked for.
var ErrNoWords = errors.New("no word to look for")

// maxTerms bounds the terms of a query: of a longer text, such as a pasted trace, the first are looked for.
const maxTerms = 40

// term is a word or a phrase that is looked for, as the words of the index in their order.
type term struct {
	words  []string
	whole  string // a single word as it was written: an identifier of which that is the whole has no stem
	quoted bool   // it is not found by its parts
	pair   bool   // a word that says nothing alone with its neighbour in the query: "such table"
}

type terms []term

// parse reads a query: words, and phrases in double quotes. A path or an identifier is a phrase of its parts. cut
// reports whether there were more than maxTerms.
func parse(query string) (found terms, cut bool) {
	count := 0
	for i, part := range strings.Split(query, `"`) {
		quoted := i%2 == 1
		written, last := []string{part}, ""
		if !quoted {
			written = strings.Fields(part)
		}
		for _, w := range written {
			var words []string
			retrieval.Words(w, func(t string) { words = append(words, t) })
			each := [][]string{words}
			if !quoted && strings.ContainsFunc(w, func(r rune) bool {
				return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
			}) {
				each = slices.Collect(slices.Chunk(words, 1)) // written without spaces: each pair of characters counts
			}
			if len(words) > 0 {
				pair := []string{last, words[0]}
				if last != "" && !quoted && len(found) < 2*maxTerms &&
					retrieval.IsFunctionWord(pair[0]) != retrieval.IsFunctionWord(pair[1]) {
					found = append(found, term{words: pair, pair: true})
				}
				last = words[len(words)-1]
			}
			for _, words := range each {
				t := term{words: words, quoted: quoted}
				if len(words) == 1 {
					t.whole = strings.Trim(strings.ToLower(w), "_")
				}
				switch {
				case !slices.ContainsFunc(words, func(w string) bool { return quoted || !retrieval.IsFunctionWord(w) }),
					slices.ContainsFunc(found, func(o term) bool { return slices.Equal(o.words, words) }):
				case count == maxTerms:
					return found, true
				default:
					found, count = append(found, t), count+1
				}
			}
		}
	}
	return found, false
}

// match returns the terms as an expression of the index: texts with any of them. If parts is set, a term is also
// found by its parts alone.
func (t terms) match(parts bool) string {
	var out []string
	for _, term := range t {
		if term.pair && parts {
			continue
		}
		if len(term.words) > 1 && (term.quoted || !parts) {
			out = append(out, `"`+strings.Join(term.words, " ")+`"`)
			continue
		}
		for _, w := range term.words {
			if stem, ok := inflected(w); ok {
				out = append(out, `"`+stem+`" *`)
			} else if len(term.words) == 1 || !retrieval.IsFunctionWord(w) {
				out = append(out, `"`+w+`"`)
			}
		}
		if w := term.whole; w != "" && w != term.words[0] &&
			!strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLetter(r) }) {
			out = append(out, `"`+w+`"`)
		}
	}
	return cmp.Or(strings.Join(out, " OR "), `""`) // "" fits nothing
}

// inflected returns the beginning of a word of a script whose languages inflect words, such as Russian and Greek: the
// index has no stems of them.
func inflected(w string) (stem string, ok bool) {
	n := utf8.RuneCountInString(w)
	if n < 5 || strings.ContainsFunc(w, func(r rune) bool { return !unicode.In(r, unicode.Cyrillic, unicode.Greek) }) {
		return "", false
	}
	return string([]rune(w)[:max(4, n-2)]), true
}

// excerptWords is how many words of a text are shown.
const excerptWords = 30

// excerpt returns the part of a text that has the most of the terms, on one line.
func (t terms) excerpt(s string) string {
	wanted := map[string]bool{}
	for _, term := range t {
		for _, w := range term.words {
			wanted[w] = true
		}
	}
	fields := strings.Fields(s)
	// A window of excerptWords words moves over the text. The excerpt begins so that the best window's end is at two
	// thirds of it, and what follows is shown, too.
	best, most, sum := 0, 0, 0
	has := make([]int, len(fields))
	for i, f := range fields {
		retrieval.Words(f, func(w string) {
			stem, ok := inflected(w)
			begins := func(o term) bool { return strings.HasPrefix(o.words[0], stem) }
			if wanted[w] || ok && slices.ContainsFunc(t, begins) {
				has[i] = 1
			}
		})
		if sum += has[i]; i >= excerptWords {
			sum -= has[i-excerptWords]
		}
		if sum > most {
			best, most = max(0, i-excerptWords*2/3), sum
		}
	}
	return quote.OneLine(strings.Join(fields[best:], " "), 8*excerptWords)
}
