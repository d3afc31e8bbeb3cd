package probe

import "context"

// Measure is measure: a run whose questions are answered by a function.
func Measure(ctx context.Context, o *Options, ask func(context.Context, Trial) (Outcome, error)) (Result, error) {
	return measure(ctx, o, ask)
}
