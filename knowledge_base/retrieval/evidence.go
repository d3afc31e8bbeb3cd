package retrieval

import (
	"math"
	"slices"
)

// DefaultMinEvidence is the strength a hit needs to be shown.
const DefaultMinEvidence = 1.0

// The constants of evidence. Exponents and factor were fitted on the odd questions of
// testdata/cards and testdata/lessons; the even ones say what that is worth
// (TestEvalLessons). The crowd is from the same sets among up to 7,000 other texts.
const (
	evidenceFactor = 2.38
	wordsExponent  = 0.65
	gramsExponent  = 1 - wordsExponent
	lengthExponent = 0.55 // a long query needs a smaller share
	evidenceCrowd  = 0.29 // more is needed for each doubling of the store
	evidenceFrom   = 160  // beyond this many documents: the best chance match is better
	evidencePool   = 4    // candidates looked at for each hit wanted,
	minPool        = 32   // at least so many
)

// leniency is what a query's kind and a strong companion change.
type leniency struct {
	// A report of a failure quotes it, so a card about it has more of its words
	// than a card has of a question's: it needs this many times as much.
	report float64
	// Once one document is found, the store is about the matter, and the others need this share
	// of the evidence.
	companion float64
	// What is shown has at least this share of the best score.
	scoreShare float64
}

// scales are what a query can reach, and its kind.
type scales struct {
	words, grams float64 // the score of a text of average length that has each term once
	content      float64 // terms that are no function words
	reports      bool    // it quotes a failure
}

// admit computes the evidence of the best candidates. Whether the query has an
// answer here at all is decided by the strongest of them; if so, it keeps, in
// order, at most q.K of at least a companion's share of that bar and of half the
// best score. What nearly repeats one of them shares its place.
func (x *Index) admit(q Query, found []Found, s *scratch) []Found {
	strongest := 0.0
	for i := range found {
		e, slot := &found[i].Evidence, x.slots[found[i].ID]
		e.Matched, e.Strength = s.asked.evidence(s.words[slot], s.grams[slot], x.words.Docs)
		if s.asked.reports {
			e.Strength /= x.lenient.report
		}
		if x.vecs != nil {
			e.Strength = max(e.Strength, x.vecs.Vouches(e.Cosine, len(x.slots)))
		}
		strongest = max(strongest, e.Strength)
	}
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

// evidence holds a document's scores against what the query can reach.
func (a *scales) evidence(words, grams float64, docs int) (matched, strength float64) {
	if a.words == 0 || a.grams == 0 {
		return 0, 0
	}
	matched = words / a.words
	crowd := 1 + evidenceCrowd*math.Log2(max(1, float64(docs)/evidenceFrom))
	strength = evidenceFactor / crowd * math.Pow(matched, wordsExponent) *
		math.Pow(grams/a.grams, gramsExponent) * math.Pow(max(a.content, 1), lengthExponent)
	return min(matched, 1), strength
}
