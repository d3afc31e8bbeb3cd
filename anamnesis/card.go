package anamnesis

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
)

// MaxCards is how many cards one pass writes at most.
const MaxCards = 3

// maxTopicRunes limits the topic of a card that no model words.
const maxTopicRunes = 110

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
