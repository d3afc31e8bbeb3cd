package anamnesis

import (
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

// PairCards returns the commands in the request's operations that failed and later succeeded on the
// path that stayed, each as the card that a user may approve. onPath reports for each step whether it lies
// on that path. No model is asked, and equal requests return equal cards.
func PairCards(r *Request, onPath []bool) []*card.Card {
	var calls []pair.Call
	var of []*record
	for _, rec := range records(r) {
		if rec.ran() && rec.step < len(onPath) && onPath[rec.step] {
			calls, of = append(calls, pairCall(rec)), append(of, rec)
		}
	}
	pairs := pair.Find(calls)
	var out []*card.Card
	for _, p := range pairs[:min(len(pairs), maxPairCards)] {
		between := of[p.Failed : p.Fixed+1]
		first, last := between[0], between[len(between)-1]
		c := cards(r, []note.Card{r.pairCard(&p, between)}, WriterExtractor, "")[0]
		c.ID = card.NewID("repair", r.Task, strconv.FormatUint(first.end, 10))
		c.Provenance.JumpOp = 0
		c.Provenance.Ranges = []card.Range{{First: first.seq, Last: last.end}}
		c.Provenance.EvidenceHash = EvidenceHash(slices.DeleteFunc(slices.Clone(r.Ops), func(o op.Op) bool { return o.Seq < first.seq || o.Seq > last.end }))
		out = append(out, c)
	}
	return out
}

// LearnedCard returns the draft of a card that holds what the agent learned on a path, in its words, with the failed
// calls of the path beside. Equal requests return equal cards.
func LearnedCard(r *Request, learned string) *card.Card {
	recs := records(r)
	learned = quote.Squash(learned)
	d := note.Card{Topic: quote.ClipMarked(learned, maxTopicRunes), Solution: []string{quote.ClipMarked(learned, note.MaxBulletRunes)}}
	falsified, _ := falsifiedPaths(recs)
	for _, f := range falsified[:min(len(falsified), note.MaxCardBullets)] {
		_, command, _ := strings.Cut(f.Action, ": ")
		d.Issue = append(d.Issue, quote.ClipMarked(fmt.Sprintf(failedForm, command, f.Error), note.MaxBulletRunes))
	}
	for _, rec := range recs {
		d.Tainted = d.Tainted || rec.tainted
	}
	c := cards(r, []note.Card{d}, writerName(r.ModelName), hashEvidence(recs))[0]
	c.ID, c.Tags = card.NewID("learned", r.Task, strconv.FormatUint(r.JumpSeq, 10)), []string{"learned"}
	return c
}

// pairCall returns a record as a call that may belong to a pair.
func pairCall(rec *record) pair.Call {
	c := pair.Call{Output: failure.Output{Text: rec.stdout, Stderr: rec.stderr, Error: rec.isError}, Step: rec.step, Changed: rec.changed}
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
		return quote.ClipMarked(quote.Squash(s), note.MaxActionRunes)
	}
	line := quote.ClipMarked(quote.Squash(p.Failure.Line), note.MaxErrorRunes)
	command := clip(pair.Main(shell.Command(between[0].args)))
	d := note.Card{
		Topic: quote.ClipMarked(line, maxTopicRunes),
		Issue: []string{quote.ClipMarked(fmt.Sprintf(failedForm, command, line), note.MaxBulletRunes)},
	}
	for _, rec := range between {
		d.Tainted = d.Tainted || rec.tainted
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
			d.Solution = append(d.Solution, fmt.Sprintf(diffForm, f, strings.Join(diff[:min(len(diff), maxDiffLines)], "\n")))
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
	if json.Unmarshal([]byte(args), &given) != nil {
		return nil
	}
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
