package probe

import "math"

// Parameters of the sequential test, which decides for one length of the context whether the
// model still attends to it.
const (
	passShare = 0.90 // hypothesis 1: the score is at least this share of the base score
	failShare = 0.75 // hypothesis 0: it is at most this share
	errorRate = 0.10 // of wrong decisions, for either hypothesis (α = β)
	minItems  = 8    // items asked before the test may end
	maxItems  = 60   // items after which the likelier hypothesis is taken
)

// sequential is Wald's sequential probability ratio test of a score.
type sequential struct {
	up, down float64 // terms that a right and a wrong answer add to the log-likelihood ratio
	Score
}

func newSequential(base float64, sofar Score) *sequential {
	p1, p0 := passShare*base, failShare*base
	return &sequential{math.Log(p1 / p0), math.Log((1 - p1) / (1 - p0)), sofar}
}

// sum returns the log-likelihood ratio so far.
func (s *sequential) sum() float64 { return float64(s.Right)*s.up + float64(s.N-s.Right)*s.down }

// decided reports whether the test has ended, and whether a boundary ended it
// rather than the limit of items.
func (s *sequential) decided() (done, sure bool) {
	bound := math.Log((1 - errorRate) / errorRate)
	sure = s.N >= minItems && math.Abs(s.sum()) >= bound
	return sure || s.N >= maxItems, sure
}

// passes reports whether hypothesis 1 is the likelier one.
func (s *sequential) passes() bool { return s.sum() > 0 }

// Wilson returns the 95% score interval of a share of right answers, 0 to 1
// when n is 0.
func Wilson(right, n int) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	const z = 1.959964 // the 97.5% quantile of the normal distribution
	p, m := float64(right)/float64(n), float64(n)
	mid := p + z*z/(2*m)
	half := z * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, (mid-half)/(1+z*z/m)), min(1, (mid+half)/(1+z*z/m))
}
