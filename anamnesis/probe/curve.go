package probe

import (
	"context"
	"math"
	"slices"
)

// What a curve of scores may look like: the share of right answers is a base
// over short texts times a sigmoid in the logarithm of the length, which is
// easShare at the EAS. The curves of NoLiMa's models fall by 0.4 to 1.6
// logits an octave; the steep ones stand for models that just cut a text off.
const (
	easShare     = 0.85 // of base, at the EAS
	octaveParts  = 4    // resolution of an EAS: a quarter of an octave
	octavesBelow = 2    // before BaseLength, so far
	surest       = 1e-3 // no share of right answers is nearer to 0 or 1
	easPoint     = 0.55 // of the probability lies below the EAS that is reported
	sureEnough   = 0.95 // probability of the EAS, within an octave, that needs no more items; also for a row of medium confidence
	guardItems   = 480  // more than the bisection's own, at most
	guardFull    = 240  // so many of them at the longest length below is what they may cost, in tokens
	guardLength  = 320  // at one length, those of the bisection included
	guardRound   = minItems
	guardBelow   = 1.0 // octaves below the estimate where they are asked
	guardNear    = 0.8 // octaves from there, at most
)

// weighedSlope is a slope in logits an octave and what it counts beforehand.
type weighedSlope struct{ slope, weight float64 }

// curveSlopes are the slopes a model may have. The median of NoLiMa's curves is 0.64.
// The four slopes below it weigh more than the others together, and the grid extends
// below the slowest of those curves, which would otherwise be fitted by a steeper one
// with too much confidence.
func curveSlopes() []weighedSlope {
	return []weighedSlope{{0.25, 4}, {0.32, 4}, {0.4, 4}, {0.55, 4}, {0.75, 2}, {1, 2}, {1.4, 2}, {2.2, 1}, {4, 1}, {8, 1}}
}

func curveBases() []float64 { return []float64{0.80, 0.85, 0.90, 0.94, 0.97, 0.99, 1} }

// estimate is what all answers together say of an EAS.
type estimate struct {
	octave float64 // the logarithm of the EAS over BaseLength, in quarters
	within float64 // the probability that the EAS lies within an octave of it
}

// length is the estimate in tokens.
func (e estimate) length() int { return int(math.Round(BaseLength*math.Exp2(e.octave)/100)) * 100 }

// octaves is the logarithm of a length over BaseLength.
func octaves(length int) float64 { return math.Log2(float64(length) / BaseLength) }

// fit returns the quantile easPoint of the EASes of all curves through the scores,
// each curve weighted by how well it explains them and by its slope. It is a
// little over the median, for a bisection that stopped low by luck saw nothing of
// what lies above, and more runs were too small than too large. The base
// is one of the unknowns: over 1,000 tokens a model of a small EAS already
// answers worse than over none. An EAS below BaseLength
// counts as BaseLength, one over longest as longest.
func fit(base Score, tests []Test, longest int) estimate {
	candidates := int(math.Round(octaves(longest)*octaveParts)) + octavesBelow*octaveParts + 1
	weights := make([]float64, 0, candidates*len(curveSlopes())*len(curveBases()))
	scores, at := []Score{base}, []float64{0}
	for _, t := range tests {
		if !t.TooLong {
			scores, at = append(scores, t.Score), append(at, octaves(t.Length))
		}
	}
	kept := make([]float64, len(at)) // of the base, at each length
	for i := range candidates {
		eas := float64(i)/octaveParts - octavesBelow
		for _, s := range curveSlopes() {
			for j := range at {
				kept[j] = 1 / (1 + math.Exp(s.slope*(at[j]-eas))*(1-easShare)/easShare)
			}
			for _, b := range curveBases() {
				w := math.Log(s.weight)
				for j, score := range scores {
					w += score.loglikelihood(b * kept[j])
				}
				weights = append(weights, w)
			}
		}
	}
	// By EAS, those outside of what can be said counting at its ends.
	best, total := slices.Max(weights), 0.0
	each := len(weights) / candidates
	shares := make([]float64, candidates-octavesBelow*octaveParts)
	for i, w := range weights {
		w = math.Exp(w - best)
		total += w
		shares[max(i/each-octavesBelow*octaveParts, 0)] += w
	}
	point, sum := 0, shares[0]
	for sum < total*easPoint && point < len(shares)-1 {
		point++
		sum += shares[point]
	}
	e := estimate{octave: float64(point) / octaveParts}
	for i := max(point-octaveParts, 0); i <= min(point+octaveParts, len(shares)-1); i++ {
		e.within += shares[i] / total
	}
	return e
}

// loglikelihood is how well a share of right answers explains a score.
func (s Score) loglikelihood(p float64) float64 {
	p = min(max(p, surest), 1-surest)
	return float64(s.Right)*math.Log(p) + float64(s.N-s.Right)*math.Log(1-p)
}

// settle takes the EAS from all answers together. A score that falls slowly
// passes or fails one length by luck: where the EAS is not known well enough,
// more is asked about an octave below it. There an item costs half of one at the
// EAS, and where a score falls by 0.5 logits an octave it tells 0.63 as much: by
// Fisher's information on the EAS, b·s·(1−s)²/(1−b·s) times the slope squared,
// where the share of right answers is b·s and s the sigmoid.
func (r *run) settle(ctx context.Context) error {
	lengths := r.o.Lengths()
	left := r.o.guardCost()
	for {
		for _, t := range r.res.Tests {
			if t.TooLong {
				lengths = slices.DeleteFunc(lengths, func(l int) bool { return l >= t.Length })
			}
		}
		e := fit(r.res.pooled(), r.res.Tests, r.longestAnswered())
		var t *Test
		if e.within < sureEnough {
			t = r.below(lengths, e, &left)
		}
		if t == nil {
			r.conclude(e)
			return nil
		}
		if err := r.test(ctx, t, min(t.N+guardRound, guardLength), false); err != nil {
			return err
		}
	}
}

// longestAnswered returns the longest length at which a question was answered
// correctly, and at least BaseLength. Beyond it a fitted curve has no evidence.
func (r *run) longestAnswered() int {
	longest := BaseLength
	for _, t := range r.res.Tests {
		if t.Right > 0 && !t.TooLong {
			longest = max(longest, t.Length)
		}
	}
	return longest
}

// below returns the test at the length nearest to guardBelow under an estimate that
// may still get items, and subtracts a round of items from left. It returns nil if
// there is no such length or too little is left.
func (r *run) below(lengths []int, e estimate, left *Cost) *Test {
	if len(lengths) < 2 {
		return nil
	}
	best, far := -1, math.Inf(1)
	target := max(e.octave-guardBelow, octaves(lengths[1])) // the first is BaseLength
	for i, l := range lengths[1:] {
		d := math.Abs(octaves(l) - target)
		at := slices.IndexFunc(r.res.Tests, func(t Test) bool { return t.Length == l })
		if d < far && d < guardNear && (at < 0 || r.res.Tests[at].N < guardLength) {
			best, far = i+1, d
		}
	}
	if best < 0 || !left.take(guardRound, lengths[best]+r.o.replyTokens()) {
		return nil
	}
	at := slices.IndexFunc(r.res.Tests, func(t Test) bool { return t.Length == lengths[best] })
	if at < 0 {
		at = len(r.res.Tests)
		r.res.Tests = append(r.res.Tests, Test{Length: lengths[best], Families: make(map[Family]Score)})
	}
	return &r.res.Tests[at]
}

// conclude writes the estimate down.
func (r *run) conclude(e estimate) {
	r.res.EAS, r.res.Within, r.res.FailsAt = e.length(), e.within, 0
	for _, t := range r.res.Tests {
		if !t.Passed && t.Length > r.res.EAS && (r.res.FailsAt == 0 || t.Length < r.res.FailsAt) {
			r.res.FailsAt = t.Length
		}
	}
}
