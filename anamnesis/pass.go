package anamnesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
)

// Request is what a pass is to turn into memory.
type Request struct {
	Task    string // the task's id
	JumpSeq uint64 // identifies the pass: card ids derive from it
	From    int    // the step the agent goes back from
	To      int    // the step it goes back to
	Reason  string // as the agent or the user gave it
	Told    bool   // the notice beside the block repeats Reason
	Attempt int    // which attempt at To's continuation this starts; below 1 counts as 1

	// Standing means that there is no jump: the steps From (the first) to To (the
	// last) leave the context for lack of room, and their work stays done.
	Standing bool
	// Left names the steps among them that a jump had left before, such as
	// "3-5, 9"; empty: none.
	Left string

	// Live are the steps on the current path, each with the one before it, and Effects the
	// commands among the operations whose effects no jump undoes. Both of a standing span.
	Live    map[int]int
	Effects []string

	// NoCards means that the pass only makes room in the context, as it also does if Standing is set. A
	// failure in unfinished work gives no lesson yet.
	NoCards bool

	// Over means that the task is finished. The ranges are paths that it left, the last of which ends with
	// the step From. The pass makes cards and no block.
	Over bool

	// Starts are the steps that each of Ranges continues; -1: the range before.
	Starts []int
	// WorldDir is the absolute path of the world's directory. Commands may name files by absolute paths,
	// and only those outside of it taint.
	WorldDir string
	// Repo is the scope of the cards. If it is empty, they hold anywhere.
	Repo string
	// Tainted are files, relative to the world, that calls before the span
	// wrote with text from outside.
	Tainted []string
	// Pairs are commands that failed and later succeeded on the path that stayed: evidence beside the ranges.
	// If Over is set, there may be no range.
	Pairs []Pair
	// Shown are the cards that the task had been shown, and those they descend from.
	Shown []string

	EAS    int        // effective attention span of the model that will read, tokens; above 0
	Ops    []op.Op    // the discarded operations, in order of seq
	Ranges []op.Range // the ranges they fill, ascending and disjoint
	// Count counts tokens in the task's encoding.
	Count func(text string) int
	// Now is the cards' creation time.
	Now time.Time
	// ModelName goes into the provenance of cards the model wrote.
	ModelName string
}

// Options bound a pass. The zero value means the defaults.
type Options struct {
	// MaxCalls is how many model calls, repairs included, a pass may make; 0
	// and values above MaxPieces mean MaxPieces.
	MaxCalls int
	// Timeout bounds the whole pass; 0 means DefaultTimeout.
	Timeout time.Duration
}

const (
	// DefaultTimeout is how long a pass may take.
	DefaultTimeout = 5 * time.Minute
	// CallTimeout bounds one model call.
	CallTimeout = 2 * time.Minute
)

// The writers of a Result.
const (
	WriterModel     = "model"
	WriterExtractor = "extractor"
)

// Result is the result of a pass.
type Result struct {
	Block     string // the hot block, between its marks; empty when the task is over
	Cards     []*card.Card
	Paired    map[string]bool // ids of the cards that rest on one of Request.Pairs
	NoCards   string          // why there is no card; empty when there is one
	Writer    string          // WriterModel | WriterExtractor
	Fallback  string          // why the extractor wrote all or a part; empty when it did not
	Dropped   int             // statements that failed grounding
	Calls     int             // model calls made
	Usage     op.Usage
	Notes     note.Notes // everything the block was cut from
	BlockLeft int        // notes the block had no room for
	Pieces    int        // pieces the evidence was shortened into; 0 without a model
	Omitted   []uint64   // operations no piece had room for
}

// ErrBadRequest is returned by Pass for a request that contradicts itself.
var ErrBadRequest = errors.New("bad request")

// Pass turns discarded operations into a hot block and cards. If m is nil, no model is asked and no card
// is made. If the model fails, its reply cannot be used, or ctx ends, the extractor supplies the notes
// that are missing and Result.Fallback says why. Every error wraps ErrBadRequest. Without a model, equal
// requests return equal results, byte for byte.
func Pass(ctx context.Context, m consult.Model, r Request, o *Options) (Result, error) {
	if err := r.check(); err != nil {
		return Result{}, fmt.Errorf("anamnesis pass for task %q: %w: %w", r.Task, ErrBadRequest, err)
	}
	recs := records(&r)
	// A lesson may cite what ran from a failure to its repair, also outside the discarded ranges.
	evident := recs
	for _, p := range r.Pairs {
		evident = append(slices.Clip(evident), p.between...)
	}
	ev := newEvidence(&r, evident)
	res := Result{Writer: WriterExtractor}
	extracted := extract(&r, recs)
	notes := extracted
	var drafts []note.Card
	proposed := 0
	if m != nil {
		a := newAsker(m, &r, o, ev, &res)
		asked := recs
		for _, p := range r.Pairs {
			asked = append(slices.Clip(asked), p.evidence()...)
		}
		answer := a.ask(ctx, asked)
		proposed = answer.proposed
		if answer.used > 0 || res.Fallback == "" {
			res.Writer = WriterModel
			notes = merge(answer.notes, extracted, recs, answer.unread)
			drafts = answer.cards
		}
	}
	if r.makesRoom() {
		drafts = nil // the path continues, so whether its lessons hold is not known yet
	}
	res.Notes = notes
	limit := note.BlockCap(r.EAS)
	if !r.Over {
		span := r.span()
		span.Ledger, span.LedgerTokens = ledger(recs), r.EAS/ledgerShare
		res.Block, res.BlockLeft = notes.Block(span, lastTodos(r.Ops), limit, r.Count)
	}
	res.Cards, res.Paired = lessons(&r, drafts, recs)
	switch {
	case len(res.Cards) > 0:
	case r.makesRoom():
		res.NoCards = "compaction writes no card"
	case proposed > 0:
		named := quote.Number(proposed, "card")
		res.NoCards = "the record does not support the " + named + " that the model proposed"
	case res.Writer == WriterExtractor:
		res.NoCards = "only a model words cards"
	default:
		res.NoCards = "the model proposed none"
	}
	return res, nil
}

// makesRoom reports whether the pass only makes the context shorter.
func (r *Request) makesRoom() bool { return r.NoCards || r.Standing }

func writerName(name string) string {
	return cmp.Or(quote.Clip(quote.Squash(name), note.MaxTaskRunes), WriterModel)
}

// span returns what a block says of the request.
func (r *Request) span() *note.Span {
	return &note.Span{
		Task: r.Task, From: r.From, To: r.To, Attempt: r.Attempt, Standing: r.Standing, Left: r.Left, Ranges: r.Ranges,
	}
}

// check returns an error if the request contradicts itself.
func (r *Request) check() error {
	switch {
	case r.Task == "":
		return errors.New("no task id")
	case r.EAS <= 0:
		return fmt.Errorf("EAS is %d, it must be above 0", r.EAS)
	case r.Count == nil:
		return errors.New("no token counter")
	case (len(r.Ops) == 0 || len(r.Ranges) == 0) && (len(r.Pairs) == 0 || !r.Over):
		return errors.New("no operations")
	}
	if len(r.Starts) > 0 && len(r.Starts) != len(r.Ranges) {
		return fmt.Errorf("%d starts for %d ranges", len(r.Starts), len(r.Ranges))
	}
	for i, rg := range r.Ranges {
		if rg.First > rg.Last || i > 0 && rg.First <= r.Ranges[i-1].Last {
			return fmt.Errorf("range %d (%v) is empty or not after the one before", i, rg)
		}
	}
	in := 0
	for i := range r.Ops {
		seq := r.Ops[i].Seq
		if i > 0 && seq <= r.Ops[i-1].Seq {
			return fmt.Errorf("operation %d does not follow %d", seq, r.Ops[i-1].Seq)
		}
		for in < len(r.Ranges) && r.Ranges[in].Last < seq {
			in++
		}
		if in == len(r.Ranges) || !r.Ranges[in].Contains(seq) {
			return fmt.Errorf("operation %d lies in none of the ranges", seq)
		}
	}
	return nil
}

// merge puts the model's notes first and adds what they lack from the extractor's: the failed calls that they do not
// cite, the first cause (the reason for going back, or if the notice has that an error that several calls met), and
// everything about records that no usable reply covers.
func merge(model, extracted note.Notes, recs []*record, unread map[uint64]bool) note.Notes {
	out := model
	out.Places, out.Effects, out.Edits = extracted.Places, extracted.Effects, extracted.Edits
	cited := make(map[uint64]bool)
	byOp := make(map[uint64]*record)
	for _, rec := range recs {
		byOp[rec.seq], byOp[rec.end] = rec, rec
	}
	for i := range out.Falsified {
		f := &out.Falsified[i]
		for _, seq := range f.Ops {
			cited[seq] = true
			if rec := byOp[seq]; rec != nil {
				cited[rec.seq], cited[rec.end] = true, true
				// The record has the state of the files in which the call ran. A model would describe the
				// state that it assumes.
				if rec.kind == recCall {
					f.State = quote.Shorten(rec.state, note.MaxStateRunes)
				}
			}
		}
	}
	for _, f := range extracted.Falsified {
		if !slices.ContainsFunc(f.Ops, func(seq uint64) bool { return cited[seq] }) {
			out.Falsified = append(out.Falsified, f)
		}
	}
	if len(extracted.Causes) > 0 {
		out.Causes = append(out.Causes, extracted.Causes[0])
	}
	unheard := func(list []note.Statement) []note.Statement {
		return slices.DeleteFunc(slices.Clone(list), func(s note.Statement) bool {
			return !slices.ContainsFunc(s.Ops, func(seq uint64) bool { return unread[seq] })
		})
	}
	out.Findings = append(out.Findings, unheard(extracted.Findings)...)
	out.Verified = append(out.Verified, unheard(extracted.Verified)...)
	return out
}
