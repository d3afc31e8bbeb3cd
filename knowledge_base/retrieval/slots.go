package retrieval

import (
	"slices"
	"strings"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// repeats is the share of the shorter text's words that another must have for the
// two to share a place in an answer; no two of testdata/cards and
// testdata/lessons, which are about different things, have it.
const repeats = 0.75

// negations are words of which nearly the same text with one says the opposite of one without.
const negations = "not never no cannot avoid without dont 不要 不能 不会 禁止 避免 切勿 不应 无法"

func denies(text string) (found bool) {
	text = strings.NewReplacer("n't", " not", "n’t", " not").Replace(strings.ToLower(text))
	lexical.Words(text, func(w string) { found = found || slices.Contains(strings.Fields(negations), w) })
	return found
}

// shareSlots returns the first k of found, where what nearly repeats an earlier one
// occurs with it. What denies the other has a place of its own.
func (x *Index) shareSlots(found []Found, k int) []Found {
	var out []Found
	var said []map[string]bool
	for _, f := range found {
		text := x.docs[x.slots[f.ID]].Text()
		own := contentWords(text)
		with := -1
		for i := range out {
			alike := with < 0 && overlap(own, said[i]) >= repeats
			if alike && denies(text) == denies(x.docs[x.slots[out[i].ID]].Text()) {
				with = i
			}
		}
		switch {
		case with >= 0:
			out[with].Also = append(out[with].Also, f.ID)
		case len(out) == k:
			return out
		default:
			out, said = append(out, f), append(said, own)
		}
	}
	return out
}

// contentWords has the words of a text but for function words.
func contentWords(text string) map[string]bool {
	out := make(map[string]bool)
	lexical.Words(text, func(w string) {
		if !lexical.IsFunctionWord(w) {
			out[w] = true
		}
	})
	return out
}

// overlap is the share of the smaller set's words that the other has.
func overlap(a, b map[string]bool) float64 {
	if len(a) > len(b) {
		a, b = b, a
	}
	both := 0
	for w := range a {
		if b[w] {
			both++
		}
	}
	return float64(both) / float64(max(len(a), 1))
}
