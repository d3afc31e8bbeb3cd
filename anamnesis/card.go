package anamnesis

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
)

// MaxCards is how many cards one pass writes at most.
const MaxCards = 2

// maxTopicRunes limits the topic of a card that no model words.
const maxTopicRunes = 110

// maxPairBullets is how many bullets about what a pair changed a lesson quotes.
const maxPairBullets = 3

// wrongForm is the bullet that says what would show a lesson wrong.
const wrongForm = "Wrong if: %s"

// maxRepoRunes bounds the name of the project in a card's scope.
const maxRepoRunes = 120

// maxEvidenceRanges bounds the ranges a card names; more become one extent.
const maxEvidenceRanges = 50

// cards makes cards of the drafts, with ids and provenance. An id derives from the
// task, the jump and the card's index, so that a repeated pass writes the same cards.
func cards(r *Request, drafts []note.Card, writer, evidenceHash string) []*card.Card {
	out := make([]*card.Card, 0, len(drafts))
	for i, d := range drafts {
		out = append(out, &card.Card{
			Topic:      d.Topic,
			SourceTask: quote.Clip(quote.Squash(r.Task), note.MaxTaskRunes),
			ID:         card.NewID("pass", r.Task, strconv.FormatUint(r.JumpSeq, 10), strconv.Itoa(i)),
			State:      card.Draft,
			Created:    r.Now.UTC(),
			Scope:      card.Scope{Repo: quote.Clip(quote.Squash(r.Repo), maxRepoRunes)},
			Provenance: card.Provenance{
				Task: quote.Clip(quote.Squash(r.Task), note.MaxTaskRunes), JumpOp: r.JumpSeq,
				Ranges: cardRanges(r), Model: writer,
				EvidenceHash: evidenceHash, Tainted: d.Tainted, Shown: r.Shown,
			},
			Issue: d.Issue, Solution: d.Solution, Constraint: d.Constraint,
		})
	}
	return out
}

// lessons makes cards of drafts that a model worded, and returns the ids of those that rest on a pair. Such a
// card quotes the pair beside the model's words.
func lessons(r *Request, drafts []note.Card, recs []*record) (out []*card.Card, paired map[string]bool) {
	paired = make(map[string]bool)
	for i, c := range cards(r, drafts, writerName(r.ModelName), hashEvidence(recs)) {
		wrong := drafts[i].WrongIf
		if p := r.citedPair(drafts[i].Ops); p != nil {
			of := p.Card
			c.Issue = slices.Concat(of.Issue[:1], c.Issue)
			c.Solution = slices.Concat(c.Solution, p.changes())
			wrong = cmp.Or(wrong, "the command still fails so after this")
			c.Provenance.JumpOp, c.Provenance.Ranges = 0, of.Provenance.Ranges
			c.Provenance.EvidenceHash = of.Provenance.EvidenceHash
			c.Provenance.Tainted = c.Provenance.Tainted || of.Provenance.Tainted
			paired[c.ID] = true
		} else if len(r.Ranges) == 0 {
			continue // it rests on nothing that could be looked up
		}
		if wrong != "" {
			c.Constraint = append(c.Constraint, fmt.Sprintf(wrongForm, wrong))
		}
		out = append(out, c)
	}
	return out, paired
}

// changes returns the bullets of a pair's solution that say what was run or how a file was edited; that a file
// changed stands there only if nothing else does.
func (p *Pair) changes() []string {
	named := slices.DeleteFunc(slices.Clone(p.Card.Solution), func(s string) bool {
		return strings.HasPrefix(s, strings.TrimSuffix(changedForm, "%s`"))
	})
	if len(named) == 0 {
		named = p.Card.Solution
	}
	return named[:min(len(named), maxPairBullets)]
}

// citedPair returns the first pair of which operations name the failure and the success; nil if there is none.
func (r *Request) citedPair(ops []uint64) *Pair {
	cites := func(rec *record) bool { return slices.Contains(ops, rec.seq) || slices.Contains(ops, rec.end) }
	for i := range r.Pairs {
		if p := &r.Pairs[i]; cites(p.failed) && cites(p.fixed) {
			return p
		}
	}
	return nil
}

func cardRanges(r *Request) []card.Range {
	if n := len(r.Ranges); n > maxEvidenceRanges {
		return []card.Range{{First: r.Ranges[0].First, Last: r.Ranges[n-1].Last}}
	}
	var out []card.Range
	for _, rg := range r.Ranges {
		out = append(out, card.Range{First: rg.First, Last: rg.Last})
	}
	return out
}

// EvidenceHash returns the evidence hash of a card with these operations, to compare it with the card's.
func EvidenceHash(ops []op.Op) string { return hashEvidence(records(&Request{Ops: ops})) }

// hashEvidence identifies what a card was made from by the texts of the records. Times and the layout of
// operations are no part of it: they may differ in a copy of the stream.
func hashEvidence(recs []*record) string {
	h := sha256.New()
	for _, rec := range recs {
		fmt.Fprintf(h, "%d %d %d\x00", rec.kind, rec.seq, rec.end)
		for _, s := range []string{rec.tool, rec.args, rec.text, rec.stdout, rec.stderr} {
			fmt.Fprintf(h, "%s\x00", s)
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}
