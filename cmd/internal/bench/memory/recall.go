package memory

import "math"

// The recall curve's constants.
const (
	// recallBase is the recall of what is at the very end of a short
	// context: GPT-4o, the best of NoLiMa's table, has a base score of 99.3.
	recallBase = 0.99
	// recallAtEAS is what is left of the base at the EAS: 85 %, by the rule
	// that most rows of eas.yaml rest on (NoLiMa's effective length).
	recallAtEAS = 0.85
	// recallSlope is how the odds of forgetting grow with the length, as a power
	// of it. Fitted to log-odds of score over base at 1k to 32k, the 17 models
	// of NoLiMa's table have slopes from 0.5 to 1.6 with a median of 0.99.
	recallSlope = 1.0
)

// Recall is the probability that a model of effective attention span eas
// attends to a statement distance tokens before the end of a context
// of length tokens. With x = sqrt(2·distance·length),
//
//	Recall = 0.99 / (1 + (0.15/0.85)·(x/eas)^1.0)
//
// The published curves give the score by length with the statement anywhere
// in the context, half way on average; x is the length for a statement half way,
// less for a nearer one and at most 1.41 times that for the first. So at the EAS
// a statement half way is recalled with 85 % of the base, which is how the EAS
// is defined. That the very beginning of a context is attended to better than
// its middle is not modelled: blocks come early, and it would favour them.
func Recall(distance, length, eas int) float64 {
	x := math.Sqrt(2 * float64(distance) * float64(length))
	odds := (1 - recallAtEAS) / recallAtEAS * math.Pow(x/float64(eas), recallSlope)
	return recallBase / (1 + odds)
}
