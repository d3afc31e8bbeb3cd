// Package probe measures a model's effective attention span: the longest text over which it
// still answers nearly as well as over a short one.
//
// It asks about generated texts of at most four lengths. A text hides facts about twelve people among
// filler sentences. The questions ask about four of them in words that the text does not use, as NoLiMa
// does, so that the answer cannot be found by matching words.
// Texts are generated from a seed: a run can be repeated, and no model was trained on them.
// The result is a proposal (Result.Row); nothing is written here.
package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/consult"
	"anamnesis/opstream/op"
)

// What a probe asks.
const (
	BaseLength     = 1_000  // tokens: the short text
	DefaultLongest = 64_000 // tokens
	DefaultReply   = 2_048  // tokens that a reply may take, thinking included
	MinBase        = 0.6    // share of right answers about short texts, below which long ones say nothing
	passShare      = 0.85   // of that share: the rule of NoLiMa, whose figures the table holds
	textsPerLength = 12
	atOnce         = 4 // questions under way together
)

var (
	// ErrNoBase says that the model cannot answer these questions even about short texts.
	ErrNoBase = errors.New("too few right answers about short texts")
	// ErrTooLong is what a Model returns when the provider refuses a prompt for its length.
	ErrTooLong = errors.New("the prompt is too long for the model")
	// ErrCut is what a Model returns when a reply ended at its limit. Its answers count as wrong.
	ErrCut = errors.New("the reply ended at its limit")
)

// Options say what to measure. The zero value means the defaults.
type Options struct {
	Seed        uint64 // of all texts
	Window      int    // the model's, in tokens, which a text and its reply must fit; 0: unknown
	Longest     int    // tokens of the longest text; 0: DefaultLongest
	ReplyTokens int    // that a reply may take; 0: DefaultReply. The model must be told the same.
	Count       func(string) int
	Progress    func(Progress) // called after each reply, never twice at once
}

// Progress says how far a run is.
type Progress struct {
	Length       int // being asked
	Done, Most   int // texts of this length
	Right, Asked int // answers about this length
	Calls        int // of the whole run
	Tokens       int // of the whole run
}

// Test is the score at one length.
type Test struct {
	Length  int  `json:"length"`
	Right   int  `json:"right"`
	N       int  `json:"n"`
	Passed  bool `json:"passed"`
	TooLong bool `json:"too_long,omitempty"` // the provider refused the length
}

func (t Test) share() float64 { return float64(t.Right) / float64(max(t.N, 1)) }

// Result is what a run found, also one that was stopped.
type Result struct {
	Model   string   `json:"model"`
	Seed    uint64   `json:"seed"`
	Tests   []Test   `json:"tests"`    // shortest length first
	EAS     int      `json:"eas"`      // the longest length that passed with all shorter ones; 0: none was measured
	FailsAt int      `json:"fails_at"` // the shortest length that did not pass; 0: none was found
	Done    bool     `json:"done"`
	Stopped string   `json:"stopped,omitempty"` // why not
	Calls   int      `json:"calls"`
	Tokens  int      `json:"tokens"` // of Calls: prompts as counted, and replies at their limit
	Usage   op.Usage `json:"usage"`  // of Calls, as the provider counts
	Cut     int      `json:"cut"`    // replies that ended at their limit
}

func (o *Options) replyTokens() int { return cmp.Or(o.ReplyTokens, DefaultReply) }

// Lengths are those that a run asks, shortest first: BaseLength, and a sixteenth, a quarter and
// the whole of the longest that the options allow.
func (o *Options) Lengths() []int {
	longest := cmp.Or(o.Longest, DefaultLongest)
	if o.Window > 0 {
		longest = min(longest, o.Window-o.replyTokens())
	}
	out := []int{BaseLength}
	for _, part := range []int{16, 4, 1} {
		if l := longest / part / 100 * 100; l > BaseLength {
			out = append(out, l)
		}
	}
	return out
}

// Cost returns the most that a run can take.
func (o *Options) Cost() (calls, tokens int) {
	for _, l := range o.Lengths() {
		calls += textsPerLength
		tokens += textsPerLength * (l + o.replyTokens())
	}
	return calls, tokens
}

// Run measures a model. If it stops early (ctx ended, an error of the model), it returns the
// lengths measured so far with the error. Texts longer than one that did not pass are not asked
// about: they are not easier, and cost the most.
func Run(ctx context.Context, m consult.Model, o Options) (Result, error) {
	r := Result{Seed: o.Seed}
	err := r.run(ctx, m, &o)
	r.Done = err == nil
	if errors.Is(err, context.Canceled) {
		r.Stopped = "interrupted"
	} else if err != nil {
		r.Stopped = err.Error()
	}
	return r, err
}

func (r *Result) run(ctx context.Context, m consult.Model, o *Options) error {
	for _, l := range o.Lengths() {
		t, err := r.measure(ctx, m, o, l)
		if err != nil {
			return err
		}
		base := t
		if len(r.Tests) > 0 {
			base = r.Tests[0]
		}
		t.Passed = !t.TooLong && t.share() >= passShare*base.share()
		r.Tests = append(r.Tests, t)
		switch {
		case base.share() < MinBase:
			return fmt.Errorf("%w: %d of %d", ErrNoBase, base.Right, base.N)
		case !t.Passed:
			r.FailsAt = l
			return nil
		}
		r.EAS = l
	}
	return nil
}

// measure asks about the texts of one length.
func (r *Result) measure(ctx context.Context, m consult.Model, o *Options, length int) (Test, error) {
	t, done := Test{Length: length}, 0
	var mu sync.Mutex // guards t, done and r
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range textsPerLength {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			it := Build(o.Seed, length, i, o.Count)
			c, err := m.Complete(ctx, it.System, it.Text)
			mu.Lock()
			defer mu.Unlock()
			r.Calls++
			r.Tokens += it.Tokens + o.replyTokens()
			r.Usage = r.Usage.Plus(c.Usage)
			switch {
			case errors.Is(err, ErrCut):
				r.Cut++
			case err != nil:
				return fmt.Errorf("ask about a text of %d tokens: %w", length, err)
			default:
				t.Right += it.Correct(c.Text)
			}
			t.N += len(it.Answers)
			done++
			if o.Progress != nil {
				o.Progress(Progress{length, done, textsPerLength, t.Right, t.N, r.Calls, r.Tokens})
			}
			return nil
		})
	}
	err := group.Wait()
	if errors.Is(err, ErrTooLong) {
		t.TooLong, err = true, nil
	}
	return t, err
}

// Source is what a row says of where its number comes from.
func (r Result) Source() string {
	var at, fails string
	for _, t := range r.Tests {
		score := fmt.Sprintf("%d of %d right at %d tokens", t.Right, t.N, t.Length)
		switch {
		case t.Length == r.EAS:
			at = score
		case t.Length == r.FailsAt && t.TooLong:
			fails = fmt.Sprintf("refused as too long at %d", t.Length)
		case t.Length == r.FailsAt:
			fails = score
		}
	}
	if fails == "" {
		at, fails = "at least that: "+at, "no longer text was asked"
	}
	base := r.Tests[0]
	return fmt.Sprintf("probe: %s, %d of %d at %d, %s; seed %d", at, base.Right, base.N, base.Length, fails, r.Seed)
}

// Row is the proposal of a result that is Done; window and encoding are those of s.
func (r Result) Row(s attention.EAS, now time.Time) attention.Row {
	return attention.Row{
		Pattern: r.Model, EAS: r.EAS, Window: max(s.Advertised, r.EAS), Encoding: s.Encoding,
		Confidence: attention.ConfidenceMedium, Source: r.Source(),
		Updated: now.UTC().Format(time.DateOnly), By: "probe",
	}
}
