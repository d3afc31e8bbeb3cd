package anamnesis

import (
	"slices"
	"strings"
	"unicode/utf8"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/pair"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/opstream/op"
)

// minQuoteRunes is the least length of a quoted error: shorter ones occur in any text by chance.
const minQuoteRunes = 3

// evidence holds what the statements of a model are checked against.
type evidence struct {
	text    string             // every output, argument and word, squashed
	records map[uint64]*record // by each op of a record
	known   map[uint64]bool    // every op of the span
}

func newEvidence(r *Request, recs []*record) *evidence {
	e := &evidence{records: make(map[uint64]*record, 2*len(recs)), known: make(map[uint64]bool, len(r.Ops))}
	for i := range r.Ops {
		e.known[r.Ops[i].Seq] = true
	}
	var b strings.Builder
	for _, rec := range recs {
		e.records[rec.seq], e.records[rec.end] = rec, rec
		e.known[rec.seq], e.known[rec.end] = true, true
		// A model quotes a command as a shell reads it, while the record holds it as JSON: both forms count.
		texts := []string{rec.text, rec.stdout, rec.stderr, rec.args, unescape.Replace(rec.args)}
		for _, s := range append(texts, rec.changed...) {
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
	return !slices.ContainsFunc(ops, func(seq uint64) bool { return !e.known[seq] })
}

// teaches reports whether a statement cites operations, all of them of the span, and one that holds a lesson.
func (e *evidence) teaches(ops []uint64) bool {
	return len(ops) > 0 && e.cited(ops) && !e.noLesson(ops)
}

// succeeded reports whether at least one operation belongs to a call that
// succeeded.
func (e *evidence) succeeded(ops []uint64) bool {
	return slices.ContainsFunc(ops, func(seq uint64) bool {
		rec := e.records[seq]
		return rec != nil && rec.ok()
	})
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

// unescape turns the escapes of arguments in JSON into what they stand for.
var unescape = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n", `\t`, " ",
	`\u0026`, "&", `\u003c`, "<", `\u003e`, ">")

// Texts that speak to the reader of a lesson, and solutions that say what not to do.
var (
	instructing = shell.Pattern(`(?i)\b(ignore|disregard|forget|override|bypass)\b[^.]{0,40}` +
		`\b(instructions?|prompts?|rules|guidelines|polic(y|ies))\b` +
		`|\byou are now\b|\bnew instructions?\b|\bsystem prompt\b` +
		`|\bdo(n't| not) (tell|inform|mention|ask)\b[^.]{0,20}\buser` +
		`|</?(system|assistant|user|instructions?)>|\[/?(system|inst)\]`)
	negated = shell.Pattern(`(?i)\b(not|never|avoid|instead|without|cannot|fails?)\b|n't\b`)
	failing = shell.Pattern(`(?i)\b(fail(s|ed|ing)?|errors?|breaks|broke)\b`)
)

// groundCard drops the statements of a lesson that the record does not support, and returns their number. A
// lesson of which no issue or no solution is left, or that instructs its reader, is dropped whole.
func (e *evidence) groundCard(c *note.Card) (dropped int, ok bool) {
	texts := slices.Concat([]string{c.Topic, c.WrongIf}, c.Issue, c.Solution, c.Constraint)
	if c.Topic == "" || !e.teaches(c.Ops) || slices.ContainsFunc(texts, instructing().MatchString) {
		return 1, false
	}
	keep := func(list []string, contradicted func(string) bool) []string {
		n := len(list)
		list = slices.DeleteFunc(list, func(s string) bool { return !e.supports(s) || contradicted(s) })
		dropped += n - len(list)
		return list
	}
	// A command that an issue says fails must not have succeeded in the end, and one that a solution says to run must
	// not have failed in the end.
	c.Issue = keep(c.Issue, func(s string) bool { return failing().MatchString(s) && e.ended(s, false) })
	c.Solution = keep(c.Solution, func(s string) bool { return !negated().MatchString(s) && e.ended(s, true) })
	c.Constraint = keep(c.Constraint, func(string) bool { return false })
	if len(c.Issue) == 0 || len(c.Solution) == 0 {
		return dropped + 1, false
	}
	if !e.supports(c.WrongIf) {
		c.WrongIf, dropped = "", dropped+1
	}
	if !e.supports(c.Topic) {
		c.Topic, dropped = quote.ClipMarked(c.Issue[0], maxTopicRunes), dropped+1
	}
	return dropped, true
}

// supports reports whether all that a text quotes occurs in the record.
func (e *evidence) supports(text string) bool {
	return !slices.ContainsFunc(quote.Quoted(text), func(q string) bool {
		q = quote.Squash(q)
		return utf8.RuneCountInString(q) >= minQuoteRunes && !strings.Contains(e.text, q)
	})
}

// ended reports whether a text quotes commands that the record knows, all of which ended last in one way.
func (e *evidence) ended(text string, failed bool) bool {
	known := false
	for _, q := range quote.Quoted(text) {
		var last *record
		for _, rec := range e.records {
			later := last == nil || rec.seq > last.seq
			if later && rec.ran() && op.Acts(rec.tool) == op.RunsShell && pair.SameCommand(q, shell.Command(rec.args)) {
				last = rec
			}
		}
		switch {
		case last == nil:
		case last.failed() != failed:
			return false
		default:
			known = true
		}
	}
	return known
}

// ground drops the statements that the span does not support, and returns their number. Cited operations
// must lie in the span and a quoted error must occur in it. Findings, verified facts and cards must cite
// something: a verified fact a call that succeeded, a falsified path or a card one that holds a lesson.
func (e *evidence) ground(r *note.Reply) (dropped int) {
	keep := func(list []note.Statement, ok func(note.Statement) bool) []note.Statement {
		kept := slices.DeleteFunc(list, func(s note.Statement) bool { return !e.cited(s.Ops) || !ok(s) })
		dropped += len(list) - len(kept)
		return kept
	}
	free := func(note.Statement) bool { return true }
	citing := func(s note.Statement) bool { return len(s.Ops) > 0 }
	n := &r.Notes
	n.Causes = keep(n.Causes, free)
	n.Findings = keep(n.Findings, citing)
	n.Verified = keep(n.Verified, func(s note.Statement) bool { return e.succeeded(s.Ops) })
	n.Untried = keep(n.Untried, free)
	n.Advice = keep(n.Advice, free)

	paths := len(n.Falsified)
	n.Falsified = slices.DeleteFunc(n.Falsified, func(f note.Falsified) bool {
		return f.Action == "" || !e.teaches(f.Ops) || f.Error != "" && !e.quoted(f.Error)
	})
	dropped += paths - len(n.Falsified)

	var cards []note.Card
	for _, c := range r.Cards {
		n, ok := e.groundCard(&c)
		if dropped += n; ok {
			cards = append(cards, c)
		}
	}
	r.Cards = cards
	return dropped
}
