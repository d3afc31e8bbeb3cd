package probe

import (
	"math"
	"slices"
)

// What a curve of scores may look like: the share of right answers is a base
// over short texts times a sigmoid in the logarithm of the length, which is
// spanShare at the span. The curves of NoLiMa's models fall by 0.4 to 1.6
// logits an octave; the steep ones stand for models that just cut a text off.
const (
	spanShare       = 0.85 // of base, at the span
	octaveParts     = 4    // spans are told apart by a quarter of an octave
	octavesBelow    = 2    // before BaseLength, so far
	surest          = 1e-3 // no share of right answers is nearer to 0 or 1
	sureEnough      = 0.97 // probability of the span, within an octave, that needs no more items
	guardItems      = 120  // more than the bisection's own, at most
	guardRound      = minItems
	confidentEnough = 0.95 // the same probability, for a row of medium confidence
)

func curveSlopes() []float64 { return []float64{0.4, 0.55, 0.75, 1, 1.4, 2.2, 4, 8} }

func curveBases() []float64 { return []float64{0.80, 0.85, 0.90, 0.94, 0.97, 0.99, 1} }

// estimate is what all answers together say of a span.
type estimate struct {
	octave float64 // the logarithm of the span over BaseLength, in quarters
	within float64 // the probability that the span lies within an octave of it
}

// length is the estimate in tokens.
func (e estimate) length() int { return int(math.Round(BaseLength*math.Exp2(e.octave)/100)) * 100 }

// octaves is the logarithm of a length over BaseLength.
func octaves(length int) float64 { return math.Log2(float64(length) / BaseLength) }

// fit gives the median of the spans that curves through the scores may have,
// each curve weighed by how well it explains them; no curve is preferred
// beforehand. The base is one of the unknowns: over 1,000 tokens a model of a
// small span already answers worse than over none. A span below BaseLength
// counts as BaseLength, one over longest as longest.
func fit(base Score, tests []Test, longest int) estimate {
	spans := int(math.Round(octaves(longest)*octaveParts)) + octavesBelow*octaveParts + 1
	weights := make([]float64, 0, spans*len(curveSlopes())*len(curveBases()))
	scores, at := []Score{base}, []float64{0}
	for _, t := range tests {
		if !t.TooLong {
			scores, at = append(scores, t.Score), append(at, octaves(t.Length))
		}
	}
	kept := make([]float64, len(at)) // of the base, at each length
	for i := range spans {
		span := float64(i)/octaveParts - octavesBelow
		for _, slope := range curveSlopes() {
			for j := range at {
				kept[j] = 1 / (1 + math.Exp(slope*(at[j]-span))*(1-spanShare)/spanShare)
			}
			for _, b := range curveBases() {
				w := 0.0
				for j, s := range scores {
					w += s.loglikelihood(b * kept[j])
				}
				weights = append(weights, w)
			}
		}
	}
	// By span, those outside of what can be said counting at its ends.
	best, total := slices.Max(weights), 0.0
	each := len(weights) / spans
	shares := make([]float64, spans-octavesBelow*octaveParts)
	for i, w := range weights {
		w = math.Exp(w - best)
		total += w
		shares[max(i/each-octavesBelow*octaveParts, 0)] += w
	}
	median, sum := 0, shares[0]
	for sum < total/2 && median < len(shares)-1 {
		median++
		sum += shares[median]
	}
	e := estimate{octave: float64(median) / octaveParts}
	for i := max(median-octaveParts, 0); i <= min(median+octaveParts, len(shares)-1); i++ {
		e.within += shares[i] / total
	}
	return e
}

// loglikelihood is how well a share of right answers explains a score.
func (s Score) loglikelihood(p float64) float64 {
	p = min(max(p, surest), 1-surest)
	return float64(s.Right)*math.Log(p) + float64(s.N-s.Right)*math.Log(1-p)
}
