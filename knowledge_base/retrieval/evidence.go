package retrieval

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultMinEvidence is the strength a hit needs to be shown.
const DefaultMinEvidence = 1.0

// The constants of evidence, chosen so that on the two public retrieval sets,
// a small bilingual one and testdata/cards the right cards pass and unrelated
// questions do not; nothing of these sets was held out. Word weights are
// flattened as if the store held evidenceBackground more cards that lack the
// word, because in a small store every word is rare.
const (
	evidenceBackground = 1000
	functionWordWeight = 0.05
	identifierWeight   = 1.5
	bigramWeight       = 0.9 // neighbouring bigrams share their characters
	evidenceFactor     = 0.47
	evidenceExponent   = 0.6
	evidenceCrowd      = 0.06 // more is needed for each doubling of the store
	evidenceCrowdFrom  = 64   // beyond this many cards
	loneWord           = 0.75 // of the strength of one ordinary word and function words,
	loneRest           = 0.15 // as which less than this many words count,
	loneQuery          = 2    // in a query of more than so many
	evidencePool       = 4    // candidates looked at for each hit wanted,
	minPool            = 32   // at least so many
)

// leniency is what of the evidence's constants was fitted most closely to
// testdata/cards and one half of testdata/lessons; what that is worth on cards
// never seen, TestHeldOutHalves and the other half say.
type leniency struct {
	// A bigram that no document has is mostly the seam between two words, which
	// says nothing, rather than a word that is missing: it counts this share.
	unknownBigram float64
	// Once one document shows that the store knows of the matter, the others
	// need this share of what it needed.
	companion float64
	// A word that any report of a failure has counts this share.
	failureWord float64
	// A report of a failure quotes it, so a card about it has more of its words
	// than a card has of a question's: it needs this many times as much.
	report float64
	// What is shown has at least this share of the best score.
	scoreShare float64
}

func defaultLeniency() leniency {
	return leniency{unknownBigram: 0.235, companion: 0.3, failureWord: 0.5, scoreShare: 0.5, report: 1.3}
}

// admit computes the evidence of the best candidates. Whether the query has an
// answer here at all is decided by the strongest of them; if so, it keeps, in
// order, at most q.K of at least a companion's share of that bar and of half the
// best score. What nearly repeats one of them shares its place.
func (x *Index) admit(q Query, found []Found, s *scratch) []Found {
	for i, f := range found {
		s.place[x.slots[f.ID]] = int32(i) + 1
	}
	matched, heaviest := make([]float64, len(found)), make([]float64, len(found))
	asked := weigh(q.Text, words)
	var total float64
	var find lookup
	reports := false
	for i, t := range asked.terms {
		list := x.words.list(t, &find)
		w := x.evidenceWeight(t, list.df) * min(asked.weights[i], 1)
		reports = reports || reportsFailure(t)
		total += w
		list.each(func(slot, _ int32) {
			if i := s.place[slot]; i > 0 {
				matched[i-1] += w
				heaviest[i-1] = max(heaviest[i-1], w)
			}
		})
	}
	strongest, vouched := 0.0, 0.0
	for i := range found {
		e := &found[i].Evidence
		if total > 0 {
			e.Matched = matched[i] / total
			unit := math.Log(evidenceBackground)
			e.Strength = strength(matched[i], total, unit, x.words.docs)
			if total > loneQuery*unit && heaviest[i] < unit && matched[i]-heaviest[i] < loneRest*unit {
				e.Strength *= loneWord
			}
		}
		strongest = max(strongest, e.Strength)
		by := x.vecs.vouches(e.Cosine, len(x.slots))
		vouched, e.Strength = max(vouched, by), max(e.Strength, by)
	}
	if reports {
		strongest /= x.lenient.report
	}
	strongest = max(strongest, vouched)
	switch {
	case q.MinEvidence < 0:
		return found[:min(q.K, len(found))]
	case strongest < q.MinEvidence:
		return nil
	}
	best := 0.0
	out := slices.DeleteFunc(found, func(f Found) bool {
		if f.Evidence.Strength < q.MinEvidence*x.lenient.companion || f.Score < x.lenient.scoreShare*best {
			return true
		}
		best = max(best, f.Score)
		return false
	})
	return x.shareSlots(out, q.K)
}

// strength holds the matched weight against what a query of that weight
// needs: less than in proportion, because chance matches grow more slowly
// than long queries do, and more in a large store, where the best chance
// match is better. unit is the weight of one ordinary word.
func strength(matched, total, unit float64, docs int) float64 {
	n := max(total/unit, 1)
	crowd := 1 + evidenceCrowd*math.Log2(max(1, float64(docs)/evidenceCrowdFrom))
	return matched / unit / (evidenceFactor * math.Pow(n, evidenceExponent) * crowd)
}

func (x *Index) evidenceWeight(term string, df int) float64 {
	w := math.Log(float64(x.words.docs+evidenceBackground) / float64(df+1))
	r, _ := utf8.DecodeRuneInString(term)
	switch {
	case isFunctionWord(term):
		w *= functionWordWeight
	case isFailureWord(term):
		w *= x.lenient.failureWord
	case isCJK(r):
		w *= bigramWeight
		if df == 0 {
			w *= x.lenient.unknownBigram
		}
	case looksLikeCode(term):
		w *= identifierWeight
	}
	return w
}

// looksLikeCode tells identifiers and error codes from prose.
func looksLikeCode(term string) bool {
	return strings.Contains(term, "_") || strings.ContainsFunc(term, unicode.IsDigit) && strings.ContainsFunc(term, unicode.IsLetter)
}
