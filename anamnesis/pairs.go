package anamnesis

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/note"
	"anamnesis/anamnesis/pair"
	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/shell"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
)

// Limits of a pair's card.
const (
	maxPairCards = 5
	maxDiffLines = 8 // of one file
	maxLineRunes = 200
)

// The forms of the bullets of a pair's card. Search reads the error behind the mark of failure.
const (
	failedForm  = "`%s` failed: %s"
	ranForm     = "Run before: `%s`"
	diffForm    = "Changed in %s:\n```diff\n%s\n```"
	changedForm = "Changed: `%s`"
)

// Pair is a command that failed and later succeeded on the path that stayed.
type Pair struct {
	Card *card.Card // that a user may approve: what failed, and what was run and changed before it succeeded

	failed, fixed *record
	between       []*record // what ran or changed something, and what a user said, from failed to fixed
}

// Pairs returns the commands in the request's operations that failed and later succeeded on the path that
// stayed. onPath reports for each step whether it lies on that path. No model is asked, and equal requests
// return equal pairs.
func Pairs(r *Request, onPath []bool) []Pair {
	var calls []pair.Call
	var of, said []*record
	for _, rec := range records(r) {
		switch {
		case rec.step >= len(onPath) || !onPath[rec.step]:
		case rec.ran():
			calls, of = append(calls, pairCall(rec)), append(of, rec)
		case rec.kind == recSaid:
			said = append(said, rec)
		}
	}
	pairs := pair.Find(calls)
	var out []Pair
	for _, p := range pairs[:min(len(pairs), maxPairCards)] {
		between := of[p.Failed : p.Fixed+1]
		first, last := between[0], between[len(between)-1]
		c := cards(r, []note.Card{r.pairCard(&p, between)}, WriterExtractor, "")[0]
		c.ID = card.NewID("repair", r.Task, strconv.FormatUint(first.end, 10))
		c.Provenance.JumpOp = 0 // no jump left these operations
		c.Provenance.Ranges = []card.Range{{First: first.seq, Last: last.end}}
		outside := func(o op.Op) bool { return o.Seq < first.seq || o.Seq > last.end }
		c.Provenance.EvidenceHash = EvidenceHash(slices.DeleteFunc(slices.Clone(r.Ops), outside))
		found := Pair{Card: c, failed: first, fixed: last}
		for _, rec := range slices.Concat(between, said) {
			acts := rec.ok() && (len(rec.writes) > 0 || op.Acts(rec.tool) == op.RunsShell && !onlyLooks(rec.args))
			within := rec.seq > first.seq && rec.seq < last.seq
			if rec == first || rec == last || within && (acts || rec.kind == recSaid) {
				found.between = append(found.between, rec)
			}
		}
		slices.SortFunc(found.between, func(a, b *record) int { return cmp.Compare(a.seq, b.seq) })
		out = append(out, found)
	}
	return out
}

// LearnedCard returns the draft of a card that holds what the agent learned on a path, in its words, with the failed
// calls of the path beside. Equal requests return equal cards.
func LearnedCard(r *Request, learned string) *card.Card {
	recs := records(r)
	learned = quote.Squash(learned)
	d := note.Card{
		Topic:    quote.ClipMarked(learned, maxTopicRunes),
		Solution: []string{quote.ClipMarked(learned, note.MaxBulletRunes)},
		Tainted:  slices.ContainsFunc(recs, (*record).isTainted),
	}
	falsified, _ := falsifiedPaths(recs)
	for _, f := range falsified[:min(len(falsified), note.MaxCardBullets)] {
		_, command, _ := strings.Cut(f.Action, ": ")
		d.Issue = append(d.Issue, quote.ClipMarked(fmt.Sprintf(failedForm, command, f.Error), note.MaxBulletRunes))
	}
	c := cards(r, []note.Card{d}, writerName(r.ModelName), hashEvidence(recs))[0]
	c.ID, c.Tags = card.NewID("learned", r.Task, strconv.FormatUint(r.JumpSeq, 10)), []string{"learned"}
	return c
}

// evidence returns a pair's records behind a note that says what they are.
func (p *Pair) evidence() []*record {
	bullets := slices.Concat(p.Card.Issue, p.Card.Solution)
	return append([]*record{{
		kind: recNote, seq: p.failed.seq, end: p.fixed.end, step: p.fixed.step, tainted: p.Card.Provenance.Tainted,
		text: "These operations stayed: a command failed and later succeeded.\n" + strings.Join(bullets, "\n"),
	}}, p.between...)
}

func PairCards(pairs []Pair) (out []*card.Card) {
	for _, p := range pairs {
		out = append(out, p.Card)
	}
	return out
}

// SameChange reports whether the solutions of two cards about pairs share a change: a command that was run, or
// the lines of an edited file.
func SameChange(a, b []string) bool {
	ran := func(s string) string {
		s, ok := strings.CutPrefix(s, strings.TrimSuffix(ranForm, "%s`"))
		if !ok {
			return ""
		}
		return strings.TrimSuffix(s, "`")
	}
	edited, _, _ := strings.Cut(diffForm, "%s")
	return slices.ContainsFunc(a, func(x string) bool {
		return slices.ContainsFunc(b, func(y string) bool {
			return x == y && strings.HasPrefix(x, edited) || ran(x) != "" && pair.SameCommand(ran(x), ran(y))
		})
	})
}

// pairCall returns a record as a call that may belong to a pair.
func pairCall(rec *record) pair.Call {
	c := pair.Call{Step: rec.step, Changed: rec.changed}
	c.Output = failure.Output{Text: rec.stdout, Stderr: rec.stderr, Error: rec.isError}
	if rec.stdout+rec.stderr == "" {
		c.Text = rec.text
	}
	if rec.exit != nil {
		c.Exit, c.HasExit = *rec.exit, true
	}
	var given struct {
		Background bool `json:"run_in_background"`
	}
	_ = json.Unmarshal([]byte(rec.args), &given) // arguments of another form name no background
	if op.Acts(rec.tool) == op.RunsShell && !given.Background {
		c.Command = shell.Command(rec.args)
	} else if rec.ok() {
		c.Wrote = rec.writes
	}
	return c
}

// pairCard words a pair: which command failed and how, and what was run and changed before it succeeded.
func (r *Request) pairCard(p *pair.Pair, between []*record) note.Card {
	clip := func(s string) string {
		if r.WorldDir != "" {
			s = strings.ReplaceAll(s, strings.TrimSuffix(r.WorldDir, "/")+"/", "")
		}
		return quote.Shorten(s, note.MaxActionRunes)
	}
	line := quote.Shorten(p.Failure.Line, note.MaxErrorRunes)
	command := clip(pair.Main(shell.Command(between[0].args)))
	d := note.Card{
		Topic: quote.ClipMarked(line, maxTopicRunes),
		Issue: []string{quote.ClipMarked(fmt.Sprintf(failedForm, command, line), note.MaxBulletRunes)},

		Tainted: slices.ContainsFunc(between, (*record).isTainted),
	}
	for _, ran := range p.Ran {
		d.Solution = append(d.Solution, fmt.Sprintf(ranForm, clip(ran)))
	}
	for _, f := range p.Files {
		var diff []string
		for _, rec := range between {
			if len(rec.writes) == 1 && rec.writes[0] == f && rec.ok() {
				diff = append(diff, diffLines(rec.args)...)
			}
		}
		if f = filepath.ToSlash(f); len(diff) > 0 {
			diff = diff[:min(len(diff), maxDiffLines)]
			d.Solution = append(d.Solution, fmt.Sprintf(diffForm, f, strings.Join(diff, "\n")))
		} else {
			d.Solution = append(d.Solution, fmt.Sprintf(changedForm, f))
		}
	}
	d.Solution = d.Solution[:min(len(d.Solution), note.MaxCardBullets)]
	return d
}

// diffLines returns what a file tool's arguments replace, as the lines of a diff.
func diffLines(args string) (out []string) {
	type replacement struct{ Old, New string }
	var given struct {
		replacement
		Content     string
		Edit, Edits json.RawMessage
	}
	_ = json.Unmarshal([]byte(args), &given) // arguments of another form replace nothing
	edits := []replacement{given.replacement, {New: given.Content}}
	for _, raw := range []json.RawMessage{given.Edit, given.Edits} {
		var one replacement
		var many []replacement
		if json.Unmarshal(raw, &many) == nil {
			edits = append(edits, many...)
		} else if json.Unmarshal(raw, &one) == nil {
			edits = append(edits, one)
		}
	}
	for _, e := range edits {
		for _, side := range []struct{ mark, text string }{{"-", e.Old}, {"+", e.New}} {
			for l := range strings.SplitSeq(side.text, "\n") {
				if strings.TrimSpace(l) != "" {
					out = append(out, side.mark+quote.ClipMarked(strings.ReplaceAll(l, "\t", "    "), maxLineRunes))
				}
			}
		}
	}
	return out
}
