package anamnesis

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/anamnesis/wording"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
)

// MaxCards is how many cards one pass writes at most.
const MaxCards = 3

// maxGoalRunes is how much of the user's request a card quotes.
const maxGoalRunes = 200

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
				Task: quote.Clip(quote.Squash(r.Task), note.MaxTaskRunes), JumpOp: r.JumpSeq, Ranges: cardRanges(r), Model: writer,
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

// EvidenceHash derives a card's evidence hash again from the operations of its ranges.
func EvidenceHash(ops []op.Op) string { return hashEvidence(records(&Request{Ops: ops})) }

// hashEvidence identifies what a card was made from: the records' own text,
// not the ops' times or layout.
func hashEvidence(recs []*record) string {
	h := sha256.New()
	for _, rec := range recs {
		fmt.Fprintf(h, "%d %d %d\x00%s\x00%s\x00%s\x00%s\x00%s\x00", rec.kind, rec.seq, rec.end, rec.tool, rec.args, rec.text, rec.stdout, rec.stderr)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// extractCard makes the one card of a pass without a model: what failed, with
// the error a later task would search by.
func extractCard(r *Request, n *note.Notes, recs []*record) note.Card {
	d := note.Card{}
	reason := quote.ClipMarked(quote.Squash(r.Reason), note.MaxBulletRunes)
	for _, f := range n.Falsified[:min(len(n.Falsified), note.MaxCardBullets)] {
		issue := f.Action + " failed"
		if f.Error != "" {
			issue += ": " + f.Error
		} else if f.Why != "" {
			issue += " (" + f.Why + ")"
		}
		d.Issue = append(d.Issue, issue)
		d.Ops = append(d.Ops, f.Ops...)
	}
	telling := slices.IndexFunc(n.Falsified, func(f note.Falsified) bool { return strings.ContainsFunc(f.Error, unicode.IsLetter) })
	switch {
	case telling >= 0:
		d.Topic = cmp.Or(n.Falsified[telling].Topic, n.Falsified[telling].Error)
	case len(n.Falsified) > 0:
		d.Topic = n.Falsified[0].Action
	case reason != "":
		d.Topic = reason
	default:
		d.Topic = fmt.Sprintf("a path of task %s that was given up", quote.ClipMarked(quote.Squash(r.Task), note.MaxTaskRunes))
	}
	d.Topic = quote.ClipMarked(d.Topic, wording.MaxTopicRunes)
	if reason != "" {
		d.Solution = append(d.Solution, wording.GivenUp+" for this reason: "+reason)
	} else {
		d.Solution = append(d.Solution, wording.GivenUp+"; no solution was found on it.")
	}
	for _, f := range n.Findings {
		if strings.Contains(f.Text, "succeeded later ") {
			d.Solution = append(d.Solution, f.Text)
			d.Ops = append(d.Ops, f.Ops...)
		}
		if len(d.Solution) == note.MaxCardBullets {
			break
		}
	}
	if len(d.Issue) == 0 {
		d.Issue = []string{plainIssue(n, d.Topic)}
	}
	switch goal := quote.ClipMarked(quote.Squash(r.Goal), maxGoalRunes); {
	case len(n.Falsified) > 0:
		d.Constraint = []string{quote.ClipMarked("Seen "+n.Falsified[0].State+"; where the files differ, the same action may succeed.", note.MaxBulletRunes)}
		if began := beganWith(recs); began != "" {
			d.Constraint = append(d.Constraint, fmt.Sprintf(wording.BeganForm, began))
		}
	case goal != "":
		// Such a card rests on what the agent said, which names no place of its own.
		d.Constraint = []string{"Seen while working on this, where no call failed, and not known to hold anywhere else: " + goal}
	}
	d.Tainted = taintedBy(recs, d.Ops)
	// Without a failed call it says what the agent said, which nothing bears out.
	d.Observed = len(n.Falsified) > 0
	return d
}

// beganWith is the command of the path that changed the files first, if a card can quote
// it whole.
func beganWith(recs []*record) string {
	i := slices.IndexFunc(recs, func(r *record) bool { return r.changes && r.ran() && r.nChange > 0 })
	if i < 0 || op.Acts(recs[i].tool) != op.RunsShell {
		return ""
	}
	if line := wording.CommandLine(shell.Command(recs[i].args)); !strings.HasSuffix(line, "…") && !strings.Contains(line, "`") {
		return line
	}
	return ""
}

// plainIssue says what a path without a failed call was about.
func plainIssue(n *note.Notes, topic string) string {
	for _, list := range [][]note.Statement{n.Findings, n.Causes, n.Verified} {
		if len(list) > 0 {
			return list[0].Text
		}
	}
	return topic
}

// taintedBy reports whether any of the operations belongs to a call that
// showed text from outside the world. Without operations the whole span
// counts.
func taintedBy(recs []*record, ops []uint64) bool {
	for _, rec := range recs {
		if rec.tainted && (len(ops) == 0 || slices.Contains(ops, rec.seq) || slices.Contains(ops, rec.end)) {
			return true
		}
	}
	return false
}
