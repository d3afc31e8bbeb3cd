package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/shell"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/tool"
)

// recallFailure is the reason of the record that a failed call met a card's error.
const recallFailure = "failure"

// Met returns the record that a failed command met the error of cards, nil if there is no such card. Those
// that neither this task nor, as far as the cards say, the tasks of the cards that it was shown had seen
// count it as a second witness. If shows is set, the record has the text of the one that the result is to
// show: reviewed, verified, or a model's lesson of this repository that rests on a pair.
func (m *Memory) Met(ctx context.Context, c op.Call, res *tool.Result, shows bool) *op.CardsRecalled {
	if res.Exit == nil {
		return nil
	}
	var args struct{ Command string }
	_ = json.Unmarshal([]byte(c.Args), &args) // another tool's call has none
	out := failure.Output{
		Command: args.Command, Text: res.Stdout, Stderr: res.Stderr, Exit: *res.Exit, HasExit: true, Error: res.IsError,
	}
	f, failed := failure.Read(out)
	if lesson, _ := failure.Lesson(out); !failed || !lesson || f.Signature == "" {
		return nil
	}
	rec := &op.CardsRecalled{Query: f.Line, Why: recallFailure, Cards: []op.CardRef{}}
	shown := m.lineage()
	var best *recalled.Hit
	for _, c := range m.layers.Visible(knowledgebase.Query{}) {
		quotes := slices.ContainsFunc(c.Issue, func(issue string) bool { return errorOf(issue) == f.Signature })
		if !quotes || slices.Contains(shown, c.ID) || m.claims(c) {
			continue
		}
		rec.Met = append(rec.Met, c.ID)
		hit := []recalled.Hit{{Card: c, Trust: m.trust(c)}}
		if shows {
			LookUp(ctx, hit, m.dir, m.State().Opened.Repo)
		}
		if h := hit[0]; shows && m.helps(&h, args.Command) && (best == nil || better(&h, best)) {
			best = &h
		}
	}
	if best != nil {
		text, used := recalled.Pack([]recalled.Hit{*best}, m.recallTokens(), m.Counter.Count)
		for _, h := range used {
			rec.Text, rec.Cards = text, append(rec.Cards, m.cardRef(h))
		}
	}
	if len(rec.Met) == 0 {
		return nil
	}
	return rec
}

// helps reports whether a card about the error of a command may be shown with its result.
func (m *Memory) helps(h *recalled.Hit, command string) bool {
	e, repo := m.evidence(h.Card), m.State().Opened.Repo
	here := repo != "" && h.Card.Scope.Repo == repo
	lesson := e.Derived && e.Paired && here && !m.Home.ReviewedOnly &&
		h.Card.Provenance.Model != anamnesis.WriterExtractor
	return (!h.Trust.Withheld || lesson && !m.namesWritten(command)) &&
		!(here && recalled.SubjectGone(h.Card, h.Missing))
}

// better reports whether a card is to be shown before another: one that is believed further, or is newer.
func better(a, b *recalled.Hit) bool {
	rungs := []recalled.Rung{recalled.Hypothesis, recalled.Verified, recalled.ReviewedRung}
	return cmp.Or(slices.Index(rungs, a.Trust.Rung)-slices.Index(rungs, b.Trust.Rung),
		a.Card.Created.Compare(b.Card.Created)) > 0
}

// namesWritten reports whether a command names a file of the directory that an earlier step of the task wrote. Its
// failure may lie in that file, about which a lesson of one other task says nothing.
func (m *Memory) namesWritten(command string) bool {
	begun, err := m.StepEndedAt(0)
	ended, eerr := m.StepEndedAt(m.State().Current)
	return err == nil && eerr == nil && slices.ContainsFunc(shell.Words(command), func(w string) bool {
		info, err := os.Stat(filepath.Join(m.dir, w))
		return err == nil && info.Mode().IsRegular() && info.ModTime().After(begun) && info.ModTime().Before(ended)
	})
}
