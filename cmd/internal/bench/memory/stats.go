package memory

import (
	"math"
	"slices"

	"anamnesis/cmd/internal/bench/depot"
)

// resamples is how often a bootstrap draws.
const resamples = 4000

// Interval is an estimate with its 95 % interval.
type Interval struct {
	Value float64 `json:"value"`
	Low   float64 `json:"low"`
	High  float64 `json:"high"`
}

// wilson is the 95 % score interval of a proportion, Wilson 1927.
func wilson(hits, n int) Interval {
	if n == 0 {
		return Interval{High: 1}
	}
	const z = 1.959964
	p, m := float64(hits)/float64(n), float64(n)
	mid := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Interval{p, max(mid-half, 0), min(mid+half, 1)}
}

// bootstrap is the percentile interval of a statistic of tasks drawn with
// replacement. The same draws serve every arm, so differences are paired.
func bootstrap(n int, s depot.Source, stat func(tasks []int) float64) Interval {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	if n == 0 {
		return Interval{}
	}
	r := s.At("bootstrap", n).Rand()
	values := make([]float64, resamples)
	drawn := make([]int, n)
	for i := range values {
		for j := range drawn {
			drawn[j] = r.IntN(n)
		}
		values[i] = stat(drawn)
	}
	slices.Sort(values)
	return Interval{stat(all), values[resamples*25/1000], values[resamples*975/1000-1]}
}

// mean is the average of f over some tasks.
func mean(tasks []int, f func(task int) float64) float64 {
	sum := 0.0
	for _, t := range tasks {
		sum += f(t)
	}
	return sum / float64(len(tasks))
}

func ratio(a, b float64) float64 {
	switch {
	case b != 0:
		return a / b
	case a == 0:
		return 1
	}
	return math.Inf(1)
}
