package anamnesis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"anamnesis/anamnesis/consult"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
)

// asker asks a model about the pieces of a span, within the limits on calls and time.
type asker struct {
	m        consult.Model
	r        *Request
	ev       *evidence
	res      *Result // calls, usage, dropped and fallback are kept here
	maxCalls int
	total    time.Duration
}

// answer is what came out of asking, grounded and merged.
type answer struct {
	notes    note.Notes
	cards    []note.Card
	proposed int // cards before grounding
	used     int // pieces with a usable reply
	unread   map[uint64]bool
}

func newAsker(m consult.Model, r *Request, o *Options, ev *evidence, res *Result) *asker {
	o = cmp.Or(o, &Options{})
	a := &asker{m: m, r: r, ev: ev, res: res, maxCalls: o.MaxCalls, total: cmp.Or(o.Timeout, DefaultTimeout)}
	if a.maxCalls <= 0 || a.maxCalls > MaxPieces {
		a.maxCalls = MaxPieces
	}
	return a
}

// ask asks about each piece once. With the calls that are left it then asks for a repair of each unusable
// reply: another piece teaches more than a second try at one.
func (a *asker) ask(ctx context.Context, recs []*record) answer {
	ctx, cancel := context.WithTimeout(ctx, a.total)
	defer cancel()
	out := answer{unread: make(map[uint64]bool)}
	for _, rec := range recs {
		out.unread[rec.seq], out.unread[rec.end] = true, true
	}
	system := systemText(a.r)
	// What a call costs beside its piece, with room for a repair and for the
	// line of what was left out.
	longest := repairText(pieceText(a.r, "", MaxPieces, MaxPieces),
		strings.Repeat("reply ", maxRepairQuoteRunes/6), errors.New(strings.Repeat("why ", 60)))
	frame := a.r.Count(system) + a.r.Count(longest) + 64
	// The whole question stays within the EAS: what a model reads beyond that, it does not attend to.
	size := min(a.r.EAS/2, a.r.EAS-frame-1)
	if size < minPieceTokens {
		a.res.Fallback = fmt.Sprintf("the EAS of %d tokens leaves no room for a question", a.r.EAS)
		return out
	}
	parts, omitted := pieces(recs, size-64, a.maxCalls, a.r.Count)
	a.res.Pieces, a.res.Omitted = len(parts), omitted
	var faults []string
	var broken []brokenReply
	for i, p := range parts {
		evidence := p.text
		if i == len(parts)-1 {
			evidence += omittedLine(omitted)
		}
		q := brokenReply{part: i, piece: p, question: pieceText(a.r, evidence, i+1, len(parts))}
		text, err := a.call(ctx, system, q.question)
		if err != nil {
			faults = append(faults, fmt.Sprintf("part %d of %d: %v", i+1, len(parts), err))
			if ctx.Err() != nil {
				break
			}
			continue
		}
		if q.problem = a.accept(&out, p, text); q.problem != nil {
			q.reply = text
			broken = append(broken, q)
		}
	}
	for _, q := range broken {
		if err := a.repair(ctx, system, q, &out); err != nil {
			faults = append(faults, fmt.Sprintf("part %d of %d: %v", q.part+1, len(parts), err))
		}
	}
	a.limitCards(&out, faults)
	return out
}

// brokenReply is a question whose answer could not be used.
type brokenReply struct {
	part     int
	piece    piece
	question string
	reply    string
	problem  error
}

func (a *asker) repair(ctx context.Context, system string, q brokenReply, out *answer) error {
	if a.res.Calls >= a.maxCalls {
		return fmt.Errorf("%w; no call was left for a repair", q.problem)
	}
	text, err := a.call(ctx, system, repairText(q.question, q.reply, q.problem))
	if err != nil {
		return fmt.Errorf("%w; the repair: %w", q.problem, err)
	}
	if err := a.accept(out, q.piece, text); err != nil {
		return fmt.Errorf("not usable after one repair: %w", err)
	}
	return nil
}

// call makes one model call, counted whatever comes of it.
func (a *asker) call(ctx context.Context, system, text string) (string, error) {
	if ctx.Err() != nil {
		return "", fmt.Errorf("the pass was ended: %w", ctx.Err())
	}
	a.res.Calls++
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	c, err := a.m.Complete(ctx, system, text)
	a.res.Usage = a.res.Usage.Plus(c.Usage)
	if err != nil {
		return "", fmt.Errorf("the request failed: %w", err)
	}
	return c.Text, nil
}

// accept decodes and grounds one reply and adds it to the answer. The error says
// why the reply cannot be used.
func (a *asker) accept(out *answer, p piece, text string) error {
	rep, err := note.Decode(text)
	if err != nil {
		return err
	}
	out.proposed += len(rep.Cards)
	dropped := a.ev.ground(&rep)
	a.res.Dropped += dropped
	if rep.Notes.Empty() && len(rep.Cards) == 0 {
		if dropped > 0 {
			a.addFallback(fmt.Sprintf("grounding rejected all %d statements of a reply", dropped))
		}
		return nil // a piece may hold nothing worth a note
	}
	for i := range rep.Cards {
		rep.Cards[i].Tainted = p.tainted
	}
	out.used++
	out.cards = append(out.cards, rep.Cards...)
	addNotes(&out.notes, rep.Notes)
	for _, rec := range p.recs {
		delete(out.unread, rec.seq)
		delete(out.unread, rec.end)
	}
	return nil
}

// addNotes appends the statements that are new, and the operations of the others.
func addNotes(to *note.Notes, from note.Notes) {
	add := func(list *[]note.Statement, more []note.Statement) {
		for _, s := range more {
			same := func(t note.Statement) bool { return strings.EqualFold(t.Text, s.Text) }
			if i := slices.IndexFunc(*list, same); i >= 0 {
				(*list)[i].Ops = note.SortedOps(append((*list)[i].Ops, s.Ops...))
				continue
			}
			*list = append(*list, s)
		}
	}
	add(&to.Causes, from.Causes)
	add(&to.Findings, from.Findings)
	add(&to.Verified, from.Verified)
	add(&to.Untried, from.Untried)
	add(&to.Advice, from.Advice)
	for _, f := range from.Falsified {
		same := func(g note.Falsified) bool {
			return strings.EqualFold(g.Action, f.Action) && g.Error == f.Error && g.State == f.State
		}
		if i := slices.IndexFunc(to.Falsified, same); i >= 0 {
			to.Falsified[i].Ops = note.SortedOps(append(to.Falsified[i].Ops, f.Ops...))
			continue
		}
		to.Falsified = append(to.Falsified, f)
	}
}

// limitCards keeps the first cards, one for each topic, and records why the extractor replaces the model.
func (a *asker) limitCards(out *answer, faults []string) {
	var cards []note.Card
	for _, c := range out.cards { // two pieces may show the same failure
		same := func(d note.Card) bool { return strings.EqualFold(d.Topic, c.Topic) }
		if len(cards) < MaxCards && !slices.ContainsFunc(cards, same) {
			cards = append(cards, c)
		}
	}
	out.cards = cards
	if len(faults) > 0 {
		a.addFallback(strings.Join(faults, "; "))
	}
	if out.used == 0 && a.res.Fallback == "" && !a.r.Over { // without a block there is nothing to replace
		a.addFallback("the model had nothing to say")
	}
}

// addFallback adds a reason why the extractor replaces the model.
func (a *asker) addFallback(why string) {
	const maxFallbackRunes = 600
	if a.res.Fallback != "" {
		why = a.res.Fallback + "; " + why
	}
	a.res.Fallback = quote.Shorten(why, maxFallbackRunes)
}
