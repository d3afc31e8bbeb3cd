package anamnesis

import (
	"slices"
	"strings"
	"unicode/utf8"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// minQuoteRunes is the least length of a quoted error: shorter ones occur in any text by chance.
const minQuoteRunes = 3

// evidence holds what the statements of a model are checked against.
type evidence struct {
	ranges  []op.Range
	text    string             // every output, argument and word, squashed
	records map[uint64]*record // by each op of a record
	known   map[uint64]bool    // every op of the span
}

func newEvidence(r *Request, recs []*record) *evidence {
	e := &evidence{ranges: r.Ranges, records: make(map[uint64]*record, 2*len(recs)), known: make(map[uint64]bool, len(r.Ops))}
	for i := range r.Ops {
		e.known[r.Ops[i].Seq] = true
	}
	var b strings.Builder
	for _, rec := range recs {
		e.records[rec.seq], e.records[rec.end] = rec, rec
		for _, s := range []string{rec.text, rec.stdout, rec.stderr, rec.args} {
			if s != "" {
				b.WriteString(quote.Squash(s))
				b.WriteByte('\n') // a quote holds no line end, so it cannot span two texts
			}
		}
	}
	e.text = b.String()
	return e
}

// quoted reports whether a squashed quote occurs in the span.
func (e *evidence) quoted(quote string) bool {
	return utf8.RuneCountInString(quote) >= minQuoteRunes && strings.Contains(e.text, quote)
}

// cited reports whether all operations lie in the span.
func (e *evidence) cited(ops []uint64) bool {
	for _, seq := range ops {
		if !e.known[seq] {
			return false
		}
	}
	return true
}

// succeeded reports whether at least one operation belongs to a call that
// succeeded.
func (e *evidence) succeeded(ops []uint64) bool {
	for _, seq := range ops {
		if rec := e.records[seq]; rec != nil && rec.ok() {
			return true
		}
	}
	return false
}

// noLesson reports whether all calls among the operations failed in a way that
// holds no lesson, such as a search without hits.
func (e *evidence) noLesson(ops []uint64) bool {
	calls := 0
	for _, seq := range ops {
		if rec := e.records[seq]; rec != nil && rec.kind == recCall {
			if calls++; rec.noLesson == "" {
				return false
			}
		}
	}
	return calls > 0
}

// observed reports whether each issue and solution of a draft occurs, word for word,
// in what the calls it cites were asked and printed.
func (e *evidence) observed(d note.Card) bool {
	var b strings.Builder
	for _, seq := range d.Ops {
		if rec := e.records[seq]; rec != nil && rec.kind == recCall {
			for _, s := range []string{rec.text, rec.stdout, rec.stderr, rec.args} {
				b.WriteString(quote.Squash(s) + "\n")
			}
		}
	}
	text := b.String()
	return !slices.ContainsFunc(slices.Concat(d.Issue, d.Solution), func(s string) bool {
		s = quote.Squash(s)
		return utf8.RuneCountInString(s) < minQuoteRunes || !strings.Contains(text, s)
	})
}

// ground drops the statements that the span does not support, and returns their number. Cited operations
// must lie in the span and a quoted error must occur in it. Findings, verified facts and cards must cite
// something: a verified fact a call that succeeded, a falsified path or a card one that holds a lesson.
func (e *evidence) ground(r *note.Reply) (dropped int) {
	keep := func(list []note.Statement, ok func(note.Statement) bool) []note.Statement {
		var out []note.Statement
		for _, s := range list {
			if e.cited(s.Ops) && ok(s) {
				out = append(out, s)
			} else {
				dropped++
			}
		}
		return out
	}
	free := func(note.Statement) bool { return true }
	citing := func(s note.Statement) bool { return len(s.Ops) > 0 }
	n := &r.Notes
	n.Causes = keep(n.Causes, free)
	n.Findings = keep(n.Findings, citing)
	n.Verified = keep(n.Verified, func(s note.Statement) bool { return e.succeeded(s.Ops) })
	n.Untried = keep(n.Untried, free)
	n.Advice = keep(n.Advice, free)

	var falsified []note.Falsified
	for _, f := range n.Falsified {
		if f.Action == "" || len(f.Ops) == 0 || !e.cited(f.Ops) || e.noLesson(f.Ops) || f.Error != "" && !e.quoted(f.Error) {
			dropped++
			continue
		}
		falsified = append(falsified, f)
	}
	n.Falsified = falsified

	var cards []note.Card
	for _, c := range r.Cards {
		if c.Topic == "" || len(c.Issue)+len(c.Solution) == 0 || len(c.Ops) == 0 || !e.cited(c.Ops) || e.noLesson(c.Ops) {
			dropped++
			continue
		}
		cards = append(cards, c)
	}
	r.Cards = cards
	return dropped
}
