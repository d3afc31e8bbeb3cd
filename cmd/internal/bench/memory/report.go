package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Report is what a run found.
type Report struct {
	Seed  uint64       `json:"seed"`
	Tasks int          `json:"tasks"` // of a row
	Rows  []*RowReport `json:"rows,omitempty"`

	Cards    *CardsReport    `json:"cards,omitempty"`
	Complete *CompleteReport `json:"complete,omitempty"`
}

// RowReport is one row of the sweep.
type RowReport struct {
	Name        string       `json:"name"`
	Params      Params       `json:"params"`
	Arms        []ArmReport  `json:"arms"`
	Comparisons []Comparison `json:"comparisons"`
}

// ArmReport is one arm's figures: means over tasks where nothing else is said.
type ArmReport struct {
	Arm      string         `json:"arm"`
	Solved   Interval       `json:"solved"` // share of the tasks, Wilson
	Repeated Interval       `json:"repeated"`
	DeadEnds float64        `json:"dead_ends"`
	Wrongly  Interval       `json:"wrongly_suppressed"` // share of the decisions with a right option
	Steps    float64        `json:"steps"`
	Cached   float64        `json:"cached"`
	Uncached float64        `json:"uncached"`
	Output   float64        `json:"output"`
	Pass     float64        `json:"pass"`  // tokens of passes, part of the above
	Price    float64        `json:"price"` // of all tokens, in uncached ones
	Peak     float64        `json:"peak"`
	Jumps    float64        `json:"jumps"`
	Passes   float64        `json:"passes"`
	Asked    float64        `json:"asked"`
	Unsolved map[string]int `json:"unsolved,omitempty"` // by why it gave up
}

// Comparison compares one arm with the pass with another arm; intervals by
// bootstrap over the same tasks.
type Comparison struct {
	Arm      string   `json:"arm"`
	Against  string   `json:"against"`
	Solved   Interval `json:"solved"`   // difference of the shares
	Uncached Interval `json:"uncached"` // difference of the means
	Price    Interval `json:"price"`    // likewise
	Repeated Interval `json:"repeated"` // ratio of the sums
	// LostTasks are the tasks that the other arm solved and this one did not,
	// WonTasks those the other way round.
	LostTasks []int `json:"lost_tasks"`
	WonTasks  []int `json:"won_tasks"`
}

func (b *bench) rowReport(row Row, arms []Arm, results [][]Metrics) *RowReport {
	r := &RowReport{Name: row.Name, Params: row.Params}
	for i, arm := range arms {
		r.Arms = append(r.Arms, b.armReport(arm, results[i]))
	}
	for i, arm := range arms {
		if !arm.Pass {
			continue
		}
		for j, other := range arms {
			if !other.Pass {
				r.Comparisons = append(r.Comparisons, b.compare(arm.Name, other.Name, results[i], results[j]))
			}
		}
	}
	return r
}

func (b *bench) armReport(arm Arm, ms []Metrics) ArmReport {
	all := make([]int, len(ms))
	r := ArmReport{Arm: arm.Name, Unsolved: make(map[string]int)}
	solved, chances, wrongly := 0, 0, 0
	for i, m := range ms {
		all[i] = i
		chances += m.Chances
		wrongly += m.Suppressed
		if m.Solved {
			solved++
		} else {
			r.Unsolved[m.GaveUp]++
		}
	}
	avg := func(f func(m *Metrics) int) float64 {
		return mean(all, func(t int) float64 { return float64(f(&ms[t])) })
	}
	r.Solved, r.Wrongly = wilson(solved, len(ms)), wilson(wrongly, chances)
	r.Repeated = bootstrap(len(ms), b.src, func(tasks []int) float64 {
		return mean(tasks, func(t int) float64 { return float64(ms[t].Repeated) })
	})
	r.DeadEnds = avg(func(m *Metrics) int { return m.DeadEnds })
	r.Steps, r.Jumps = avg(func(m *Metrics) int { return m.Steps }), avg(func(m *Metrics) int { return m.Jumps })
	r.Cached, r.Uncached = avg(func(m *Metrics) int { return m.Cached }), avg(func(m *Metrics) int { return m.Uncached })
	r.Output, r.Pass = avg(func(m *Metrics) int { return m.Output }), avg(func(m *Metrics) int { return m.PassTokens })
	r.Peak, r.Passes = avg(func(m *Metrics) int { return m.Peak }), avg(func(m *Metrics) int { return m.Passes })
	r.Price = mean(all, func(t int) float64 { return ms[t].price() })
	r.Asked = avg(func(m *Metrics) int { return m.Asked })
	return r
}

func (b *bench) compare(name, against string, ours, theirs []Metrics) Comparison {
	c := Comparison{Arm: name, Against: against, LostTasks: []int{}, WonTasks: []int{}}
	share := func(ms []Metrics, t int) float64 {
		if ms[t].Solved {
			return 1
		}
		return 0
	}
	for t := range ours {
		switch {
		case theirs[t].Solved && !ours[t].Solved:
			c.LostTasks = append(c.LostTasks, t)
		case ours[t].Solved && !theirs[t].Solved:
			c.WonTasks = append(c.WonTasks, t)
		}
	}
	n := len(ours)
	c.Solved = bootstrap(n, b.src, func(tasks []int) float64 {
		return mean(tasks, func(t int) float64 { return share(ours, t) - share(theirs, t) })
	})
	c.Uncached = bootstrap(n, b.src, func(tasks []int) float64 {
		return mean(tasks, func(t int) float64 { return float64(ours[t].Uncached - theirs[t].Uncached) })
	})
	c.Price = bootstrap(n, b.src, func(tasks []int) float64 {
		return mean(tasks, func(t int) float64 { return ours[t].price() - theirs[t].price() })
	})
	c.Repeated = bootstrap(n, b.src, func(tasks []int) float64 {
		sum := func(ms []Metrics) float64 {
			return mean(tasks, func(t int) float64 { return float64(ms[t].Repeated) })
		}
		return min(ratio(sum(ours), sum(theirs)), math.MaxFloat64) // JSON has no infinity
	})
	return c
}

// Claim is one requirement of the bar and whether the figures meet it.
type Claim struct {
	Text string `json:"text"`
	Held bool   `json:"held"`
	Got  string `json:"got"`
}

// Claims holds the headline row against the bar, for one arm with the pass.
func (r *RowReport) Claims(arm string) []Claim {
	var out []Claim
	against := func(other string) (Comparison, bool) {
		i := slices.IndexFunc(r.Comparisons, func(c Comparison) bool { return c.Arm == arm && c.Against == other })
		if i < 0 {
			return Comparison{}, false
		}
		return r.Comparisons[i], true
	}
	for _, bar := range []struct {
		other  string
		points float64
	}{{ArmForget, 15}, {ArmMask, 5}, {ArmMaskJump, 5}} {
		if c, ok := against(bar.other); ok {
			out = append(out, Claim{
				Text: fmt.Sprintf("%s solves at least %.0f points more than %s, the interval excluding zero", arm, bar.points, bar.other),
				Held: c.Solved.Value >= bar.points/100 && c.Solved.Low > 0, Got: points(c.Solved),
			})
			if bar.other != ArmForget {
				out = append(out, Claim{
					Text: fmt.Sprintf("%s takes fewer uncached tokens than %s", arm, bar.other), Held: c.Uncached.High < 0,
					Got: fmt.Sprintf("%+.0f (%+.0f to %+.0f)", c.Uncached.Value, c.Uncached.Low, c.Uncached.High),
				})
			}
		}
	}
	if c, ok := against(ArmMail); ok {
		out = append(out, Claim{
			Text: fmt.Sprintf("%s repeats at most half as many dead ends as %s", arm, ArmMail), Held: c.Repeated.Value <= 0.5,
			Got: fmt.Sprintf("%s (%s to %s)", times(c.Repeated.Value), times(c.Repeated.Low), times(c.Repeated.High)),
		})
	}
	if i := slices.IndexFunc(r.Arms, func(a ArmReport) bool { return a.Arm == arm }); i >= 0 {
		w := r.Arms[i].Wrongly
		out = append(out, Claim{Text: arm + " wrongly suppresses a right option in less than 3 % of the decisions", Held: w.Value < 0.03, Got: percent(w)})
	}
	return out
}

func points(i Interval) string {
	return fmt.Sprintf("%+.1f points (%+.1f to %+.1f)", 100*i.Value, 100*i.Low, 100*i.High)
}

func percent(i Interval) string {
	return fmt.Sprintf("%.1f %% (%.1f–%.1f)", 100*i.Value, 100*i.Low, 100*i.High)
}

// causes lists why tasks were not solved, most frequent first.
func causes(m map[string]int) string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int {
		if m[x] != m[y] {
			return m[y] - m[x]
		}
		return strings.Compare(x, y)
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, m[name])
	}
	return strings.Join(names, ", ")
}
