package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"anamnesis/anamnesis/consult"
	"anamnesis/opstream/op"
)

// The lengths and counts of a measurement.
const (
	BaseLength     = 1_000   // tokens: where a model's own score is taken
	BaseItems      = 64      // a family
	MinBase        = 0.85    // a family the model cannot do at BaseLength is dropped
	LongestLength  = 256_000 // tokens
	DefaultReply   = 2_048   // tokens a reply may take, thinking included
	DefaultAtOnce  = 4       // questions
	stepsPerOctave = 2
)

// Options say what to measure. The zero value means the defaults.
type Options struct {
	Seed     uint64   // of all items
	Families []Family // nil: all
	// Window is the model's advertised window in tokens; lengths that do not
	// fit it with a reply are not asked. 0: unknown.
	Window int
	// Longest is the longest length to ask; 0 means LongestLength.
	Longest int
	// ReplyTokens is what a reply may take; 0 means DefaultReply. The model
	// must be told the same.
	ReplyTokens int
	// MaxCalls and MaxTokens (prompts, as counted, and replies at their most)
	// end a run before they are passed; 0: no bound but Cost.
	MaxCalls, MaxTokens int
	// AtOnce is how many questions are under way together; 0 means
	// DefaultAtOnce. The result does not depend on it.
	AtOnce int
	// Count counts tokens. Needed by Run.
	Count func(string) int
	// Progress is called after each answer, never twice at once.
	Progress func(Progress)
	// Record keeps outcomes and knows those of an earlier run; nil: nothing is
	// kept.
	Record *Record
}

// Progress says how far a run is.
type Progress struct {
	Phase  string // what is being asked, for people
	Done   int    // items of this phase
	Most   int    // items this phase can take
	Right  int
	Calls  int // of the whole run
	Tokens int // of the whole run, as Result.Tokens
}

// Outcome is what came of one item.
type Outcome struct {
	Right   bool     `json:"right"`
	Cut     bool     `json:"cut,omitempty"`      // the reply ended at its limit: counted as wrong
	TooLong bool     `json:"too_long,omitempty"` // the provider refused the length: counted as wrong
	Tokens  int      `json:"tokens"`             // of the prompt, as counted
	Usage   op.Usage `json:"usage"`              // as the provider counts
}

// Score is how many of how many were answered right.
type Score struct {
	Right int `json:"right"`
	N     int `json:"n"`
}

// Share is the score as a number, 0 when nothing was asked.
func (s Score) Share() float64 { return float64(s.Right) / float64(max(s.N, 1)) }

func (s Score) String() string { return fmt.Sprintf("%d of %d", s.Right, s.N) }

func (s *Score) add(right bool) {
	s.N++
	if right {
		s.Right++
	}
}

// BaseScore is a family's score at BaseLength.
type BaseScore struct {
	Family Family `json:"family"`
	Score
	Kept bool `json:"kept"` // at least MinBase
}

// Test is what was found at one length.
type Test struct {
	Length int `json:"length"`
	Score
	Passed   bool             `json:"passed"`
	Sure     bool             `json:"sure"` // its items are as many as a boundary of the test needs
	TooLong  bool             `json:"too_long,omitempty"`
	Families map[Family]Score `json:"families"`
}

// Result is what a run found, also one that was stopped.
type Result struct {
	Model string      `json:"model"`
	Seed  uint64      `json:"seed"`
	Bases []BaseScore `json:"bases"`
	Base  float64     `json:"base"` // of the families kept, 0 before it is known
	Tests []Test      `json:"tests"`
	// EAS is where the curve through all answers crosses 0.85 of base, at most the
	// longest length of which a question was answered right; of a run that is not
	// done, the longest length that passed, 0 when nothing is known.
	EAS int `json:"eas"`
	// Within is the probability that it is right within an octave.
	Within  float64  `json:"within"`
	FailsAt int      `json:"fails_at"` // shortest length over EAS that did not pass; 0: none was found
	Done    bool     `json:"done"`
	Stopped string   `json:"stopped,omitempty"` // why not
	Calls   int      `json:"calls"`             // questions asked in this run, without those taken from the record
	Known   int      `json:"known"`             // taken from the record
	Tokens  int      `json:"tokens"`            // of Calls: prompts as counted, and replies at their most
	Usage   op.Usage `json:"usage"`             // of all, as the provider counts
	Cut     int      `json:"cut"`               // replies that ended at their limit
}

var (
	// ErrLimit says that a run ended at MaxCalls or MaxTokens.
	ErrLimit = errors.New("a limit of the probe was reached")
	// ErrNoBase says that no family reached MinBase: the model cannot do these
	// questions even over short texts, so nothing can be measured with them.
	ErrNoBase = errors.New("no family of questions reaches its base score")
)

// Lengths are those a run may ask, shortest first: two an octave from
// BaseLength, as far as longest and the window allow.
func (o *Options) Lengths() []int {
	longest := cmp.Or(o.Longest, LongestLength)
	if o.Window > 0 {
		longest = min(longest, o.Window-o.replyTokens())
	}
	var out []int
	for i := 0; ; i++ {
		l := int(math.Round(BaseLength*math.Exp2(float64(i)/stepsPerOctave)/100)) * 100
		if l > max(longest, BaseLength) {
			return out
		}
		out = append(out, l)
	}
}

func (o *Options) replyTokens() int { return cmp.Or(o.ReplyTokens, DefaultReply) }

func (o *Options) families() []Family {
	if len(o.Families) > 0 {
		return o.Families
	}
	return Families()
}

// Cost is the most a run can take, with nothing taken from a record and
// without its caps.
type Cost struct {
	Calls  int `json:"calls"`
	Tokens int `json:"tokens"` // prompts and replies
}

// Cost adds up the base, the most expensive way through the bisection and the
// items after it, at the longest length that below returns.
func (o *Options) Cost() Cost {
	base := BaseItems * len(o.families())
	c := Cost{base, base * (BaseLength + o.replyTokens())}
	lengths := o.Lengths()
	var worst func(pass, fail int) Cost
	worst = func(pass, fail int) Cost {
		if fail-pass <= 1 {
			return Cost{}
		}
		at := (pass + fail) / 2
		left, right := worst(pass, at), worst(at, fail)
		return Cost{maxItems + max(left.Calls, right.Calls), maxItems*(lengths[at]+o.replyTokens()) + max(left.Tokens, right.Tokens)}
	}
	w := worst(0, len(lengths))
	g := o.guardCost()
	return Cost{c.Calls + w.Calls + g.Calls, c.Tokens + w.Tokens + g.Tokens}
}

// guardCost is the most the items after the bisection can take: more of them
// where they are short, for the tokens of guardFull at the longest length.
func (o *Options) guardCost() Cost {
	lengths := o.Lengths()
	longest := lengths[min(max(len(lengths)-2, 2), len(lengths)-1)]
	return Cost{guardItems, guardFull * (longest + o.replyTokens())}
}

// take takes so many calls of so many tokens out, if all of them are left.
func (c *Cost) take(calls, tokens int) bool {
	if calls > c.Calls || calls*tokens > c.Tokens {
		return false
	}
	c.Calls -= calls
	c.Tokens -= calls * tokens
	return true
}

// Run measures a model. If it stops early (ctx ended, ErrLimit, an error of the
// model), it returns the result so far with the error, and a run with the same
// options and record continues from there.
func Run(ctx context.Context, m consult.Model, o Options) (Result, error) {
	return measure(ctx, &o, func(ctx context.Context, t Trial) (Outcome, error) {
		it := Build(o.Seed, t, o.Count)
		c, err := m.Complete(ctx, it.System, it.Text)
		out := Outcome{Tokens: it.Tokens, Usage: c.Usage}
		switch {
		case errors.Is(err, ErrTooLong):
			out.TooLong = true
		case errors.Is(err, ErrCut):
			out.Cut = true
		case err != nil:
			return out, fmt.Errorf("ask about a text of %d tokens: %w", t.Length, err)
		default:
			out.Right = it.Right(c.Text)
		}
		return out, nil
	})
}

var (
	// ErrTooLong is what a Model says when the provider refuses a prompt for its
	// length. It counts as a wrong answer.
	ErrTooLong = errors.New("the prompt is too long for the model")
	// ErrCut is what a Model says when the reply ended at its limit. It counts
	// as a wrong answer.
	ErrCut = errors.New("the reply ended at its limit")
)

// run is one measurement under way.
type run struct {
	o   *Options
	ask func(context.Context, Trial) (Outcome, error)
	res Result
}

func measure(ctx context.Context, o *Options, ask func(context.Context, Trial) (Outcome, error)) (Result, error) {
	r := &run{o: o, ask: ask, res: Result{Seed: o.Seed, Tests: []Test{}}}
	err := r.base(ctx)
	if err == nil {
		err = r.bisect(ctx)
	}
	if err == nil {
		err = r.settle(ctx)
	}
	if err != nil {
		r.res.Stopped = err.Error()
		if errors.Is(err, context.Canceled) {
			r.res.Stopped = "interrupted"
		}
	}
	r.res.Done = err == nil
	return r.res, err
}

// base takes each family's score at BaseLength and drops the families the
// model cannot do.
func (r *run) base(ctx context.Context) error {
	for _, f := range r.o.families() {
		b := BaseScore{Family: f}
		items := func(i int) Trial { return Trial{f, BaseLength, i} }
		err := r.series(ctx, fmt.Sprintf("base, %s", f), BaseItems, items, func(t Trial, out Outcome) bool {
			b.add(out.Right)
			return b.N < BaseItems
		}, &b.Score)
		if err != nil {
			return err
		}
		b.Kept = b.Share() >= MinBase
		r.res.Bases = append(r.res.Bases, b)
	}
	pooled := r.res.pooled()
	if pooled.N == 0 {
		return fmt.Errorf("%w of %g at %d tokens", ErrNoBase, MinBase, BaseLength)
	}
	r.res.Base = pooled.Share()
	r.res.EAS = BaseLength
	return nil
}

// bisect looks for the longest length that passes.
func (r *run) bisect(ctx context.Context) error {
	lengths := r.o.Lengths()
	for pass, fail := 0, len(lengths); fail-pass > 1; {
		at := (pass + fail) / 2
		r.res.Tests = append(r.res.Tests, Test{Length: lengths[at], Families: make(map[Family]Score)})
		t := &r.res.Tests[len(r.res.Tests)-1]
		if err := r.test(ctx, t, maxItems, true); err != nil {
			return err
		}
		if t.Passed {
			pass = at
			r.res.EAS = lengths[at]
		} else {
			fail = at
			r.res.FailsAt = lengths[at]
		}
	}
	return nil
}

// test asks for more items of one length until it has so many, or with decide
// until they decide. The families take turns.
func (r *run) test(ctx context.Context, t *Test, most int, decide bool) error {
	var kept []Family
	for _, b := range r.res.Bases {
		if b.Kept {
			kept = append(kept, b.Family)
		}
	}
	seq := newSequential(r.res.Base, t.Score)
	had := t.N
	items := func(i int) Trial { return Trial{kept[(had+i)%len(kept)], t.Length, had + i} }
	err := r.series(ctx, fmt.Sprintf("%d tokens", t.Length), most-had, items, func(trial Trial, out Outcome) bool {
		seq.add(out.Right)
		t.add(out.Right)
		s := t.Families[trial.Family]
		s.add(out.Right)
		t.Families[trial.Family] = s
		t.TooLong = t.TooLong || out.TooLong
		done, _ := seq.decided()
		return !(decide && done) && !t.TooLong
	}, &t.Score)
	_, t.Sure = seq.decided()
	t.Passed = seq.passes() && !t.TooLong
	return err
}

// series asks items 0, 1, … in batches and hands their outcomes to take in
// order, until take has enough.
func (r *run) series(ctx context.Context, phase string, most int, item func(int) Trial, take func(Trial, Outcome) bool, score *Score) error {
	before := score.N
	for first := 0; first < most; {
		batch := make([]Trial, min(cmp.Or(max(r.o.AtOnce, 0), DefaultAtOnce), most-first))
		for i := range batch {
			batch[i] = item(first + i)
		}
		outs, err := r.batch(ctx, batch)
		for i, out := range outs {
			more := take(batch[i], out)
			if r.o.Progress != nil {
				r.o.Progress(Progress{phase, score.N, before + most, score.Right, r.res.Calls, r.res.Tokens})
			}
			if !more {
				return nil
			}
		}
		if err != nil {
			return err
		}
		first += len(batch)
	}
	return nil
}

// batch asks some items together. The outcomes are those of the first items,
// as many as were answered without a gap; the error says why not all.
func (r *run) batch(ctx context.Context, trials []Trial) ([]Outcome, error) {
	outs, errs := make([]Outcome, len(trials)), make([]error, len(trials))
	var wg sync.WaitGroup
	var mu sync.Mutex // r.res and the record
	for i, t := range trials {
		mu.Lock()
		out, known := r.o.Record.known(t)
		if known {
			outs[i] = out
			r.res.Known++
		} else {
			errs[i] = r.reserve(ctx, t)
		}
		mu.Unlock()
		if errs[i] != nil {
			break
		}
		if known {
			continue
		}
		wg.Go(func() {
			out, err := r.ask(ctx, t)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				err = r.o.Record.add(t, out)
			}
			outs[i], errs[i] = out, err
		})
	}
	wg.Wait()
	answered := slices.IndexFunc(errs, func(err error) bool { return err != nil })
	var err error
	if answered < 0 {
		answered = len(trials)
	} else {
		err = errs[answered]
	}
	for _, out := range outs[:answered] {
		r.count(out)
	}
	return outs[:answered], err
}

// reserve takes one call out of the limits, before it is made.
func (r *run) reserve(ctx context.Context, t Trial) error {
	tokens := t.Length + r.o.replyTokens()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.o.MaxCalls > 0 && r.res.Calls >= r.o.MaxCalls:
		return fmt.Errorf("%w: %d calls", ErrLimit, r.o.MaxCalls)
	case r.o.MaxTokens > 0 && r.res.Tokens+tokens > r.o.MaxTokens:
		return fmt.Errorf("%w: the next question would pass %d tokens", ErrLimit, r.o.MaxTokens)
	}
	r.res.Calls++
	r.res.Tokens += tokens
	return nil
}

func (r *run) count(out Outcome) {
	r.res.Usage = r.res.Usage.Plus(out.Usage)
	if out.Cut {
		r.res.Cut++
	}
}
