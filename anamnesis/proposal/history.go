package proposal

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"anamnesis/anamnesis/attention"
	"anamnesis/opstream/op"
)

// The evidence that a rise of errors needs before it is proposed.
const (
	minSide      = 30   // calls on either side of a cut
	minRatio     = 1.5  // of the failure rates
	significance = 0.01 // of Fisher's exact test, one-sided, times the cuts tried
	shortestCut  = 1000 // tokens; cuts are its doublings
	cuts         = 10
)

// scriptPrefix begins the names of recordings, which attend to nothing.
const scriptPrefix = "script:"

// sample is one tool call a model made.
type sample struct {
	prompt int // tokens of the context it was made from, as the provider counted
	failed bool
}

// History collects how models' calls went against the length of their
// context. It is fed with whole streams, one task after the other.
type History struct {
	samples map[string][]sample
	task    task
}

// task is what has to be known of the task being read.
type task struct {
	model   string
	tree    string
	pending map[string]pending // by call id
	made    map[string]bool    // calls made before: world, tool, arguments
}

type pending struct {
	prompt           int
	malformed, again bool
}

// Task begins another task's stream.
func (h *History) Task() {
	h.task = task{pending: make(map[string]pending), made: make(map[string]bool)}
	if h.samples == nil {
		h.samples = make(map[string][]sample)
	}
}

// Add takes in the next operation of the task. A call counts as failed when
// its tool reported an error, when its arguments were no JSON object, or when
// the same call had been made in the same state of the world. Calls that were
// refused, or whose outcome is unknown, say nothing about the model.
func (h *History) Add(o op.Op) {
	t := &h.task
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		t.model = b.Model
	case *op.TaskResumed:
		t.model = cmp.Or(b.Model, t.model)
	case *op.WorldSaved:
		t.tree = b.Tree
	case *op.ModelReplied:
		for _, c := range b.Calls {
			key := t.tree + "\x00" + c.Name + "\x00" + c.Args
			t.pending[c.ID] = pending{b.Usage.Prompt, !c.ValidArgs(), t.made[key]}
			t.made[key] = true
		}
	case *op.ToolReturned:
		p, ok := t.pending[b.Call]
		delete(t.pending, b.Call)
		if !ok || p.prompt <= 0 || b.Refused || b.Unknown || strings.HasPrefix(t.model, scriptPrefix) {
			return
		}
		h.samples[t.model] = append(h.samples[t.model], sample{p.prompt, b.IsError || p.malformed || p.again})
	}
}

// rate is how many of how many calls failed.
type rate struct{ failed, n int }

func (r rate) share() float64 { return float64(r.failed) / float64(max(r.n, 1)) }

func (r rate) String() string {
	return fmt.Sprintf("%d of %d (%.0f%%)", r.failed, r.n, 100*r.share())
}

// rise is a length beyond which a model's calls fail more often.
type rise struct {
	cut          int
	below, above rate
	p            float64 // corrected for the cuts that were tried
}

// findRise looks for the cut with the clearest rise.
func findRise(samples []sample) (rise, bool) {
	var best rise
	tried := 0
	for i := range cuts {
		r := rise{cut: shortestCut << i}
		for _, s := range samples {
			side := &r.below
			if s.prompt > r.cut {
				side = &r.above
			}
			side.n++
			if s.failed {
				side.failed++
			}
		}
		if r.below.n < minSide || r.above.n < minSide {
			continue
		}
		tried++
		r.p = fisher(r.below, r.above)
		if best.cut == 0 || r.p < best.p {
			best = r
		}
	}
	best.p = min(1, best.p*float64(tried)) // Bonferroni's correction: each cut is another chance of an accident
	return best, best.cut > 0 && best.p < significance && best.above.share() >= minRatio*best.below.share()
}

// fisher is the one-sided p of R. A. Fisher's exact test: how likely so many
// failures above, or more, would be if the length did not matter.
func fisher(below, above rate) float64 {
	n, failed := below.n+above.n, below.failed+above.failed
	p := 0.0
	for k := above.failed; k <= min(failed, above.n); k++ {
		p += math.Exp(choose(above.n, k) + choose(below.n, failed-k) - choose(n, failed))
	}
	return min(1, p)
}

// choose is the logarithm of the binomial coefficient.
func choose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return lg(n) - lg(k) - lg(n-k)
}

// FromHistory proposes a lower EAS for each model whose calls fail clearly
// more often beyond a length within the table's span. It never
// proposes a higher one: that longer contexts did no harm so far is no
// measurement.
func FromHistory(h *History, t *attention.Table) []Proposal {
	var out []Proposal
	for model, samples := range h.samples {
		s := t.Lookup(model)
		// The table already says that calls beyond the span fail.
		samples = slices.DeleteFunc(slices.Clone(samples), func(c sample) bool { return c.prompt > s.EAS })
		r, ok := findRise(samples)
		if !ok {
			continue
		}
		source := fmt.Sprintf("work history: %s calls fail above %d tokens of context, %s up to there, p %.1g",
			r.above, r.cut, r.below, r.p)
		// The evidence counts as changed when there is twice as much of it.
		key := fmt.Sprintf("%d/%d", r.cut, int(math.Log2(float64(len(samples)))))
		out = append(out, newProposal(KindHistory, key, attention.Row{
			Pattern: model, EAS: r.cut, Window: max(s.Advertised, r.cut), Encoding: s.Encoding,
			Confidence: attention.ConfidenceLow, Source: source,
		}, s, source, "later calls of a task may be harder whatever the length"))
	}
	return out
}
