package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"anamnesis/anamnesis/experience"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/quote"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// Limits of recall.
const (
	minRecallTokens = 400     // a recall may always be this long
	recallShare     = 8       // otherwise one part in so many of the EAS
	recallCards     = 5       // cards that an agent who asks is shown
	startCards      = 2       // cards that a task is shown unasked
	projectEvidence = 0.3     // share of the usual threshold for a card about the task's project
	minReopened     = 4_000   // bytes of an operation that recall shows at once, at least
	maxReopened     = 100_000 // and at most; in between, a byte for each token of the EAS: about a quarter of it
)

// Recalls that are not about a result.
const (
	recallStart = "start"
	recallAsked = "asked"
	// RecallPrompt is a recall for further words of the user. It leaves out the cards that the
	// task was shown before.
	RecallPrompt = "prompt"
)

// Recall searches cards for the situation and records the result, even if it is empty, except
// for RecallPrompt.
func (m *Memory) Recall(ctx context.Context, why string) error {
	query := m.State().Said.Request
	if query == state.NoPrompt {
		query = ""
	}
	rec, err := m.findCards(ctx, query, why)
	if err != nil {
		return nil // interrupted: the recall stays due
	}
	if why == recallStart {
		m.tellFacts(rec)
	}
	if why == RecallPrompt && rec.Text == "" && rec.Error == "" {
		return nil
	}
	return m.Record(context.WithoutCancel(ctx), rec)
}

// findCards searches and renders; for an empty query nothing is found. If the knowledge base cannot be searched, the
// recall is empty and the task continues; the only error is ctx's.
func (m *Memory) findCards(ctx context.Context, query, why string) (*op.CardsRecalled, error) {
	rec := &op.CardsRecalled{Query: query, Why: why, Cards: []op.CardRef{}}
	var about map[string]bool // the cards of the task's project
	if why != recallAsked {
		about = m.aboutProject()
	}
	hits, err := m.search(ctx, query, about)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rec.Error = err.Error()
		return rec, nil
	}
	// A search that continues without its embedder is reported once, until that changes.
	if err := m.cards.VectorError(); err == nil {
		m.degraded = ""
	} else if said := err.Error(); said != m.degraded {
		m.degraded, rec.Degraded = said, said
	}
	for _, s := range m.layers {
		if damage := s.ReviewsDamage(); damage != "" && why == recallStart {
			rec.Damage = append(rec.Damage, damage)
		}
	}
	hits = eachOnce(hits)
	if why == RecallPrompt {
		e, err := m.experienced()
		if err != nil {
			rec.Error = err.Error()
			return rec, nil
		}
		hits = slices.DeleteFunc(hits, func(h recalled.Hit) bool {
			return slices.ContainsFunc(e.Shown, func(s experience.Showing) bool { return s.Card == h.Card.ID })
		})
	}
	LookUp(ctx, hits, m.dir, m.State().Opened.Repo)
	hits = slices.DeleteFunc(hits, func(h recalled.Hit) bool {
		repo := m.State().Opened.Repo
		return repo != "" && h.Card.Scope.Repo == repo && recalled.SubjectGone(h.Card, h.Missing)
	})
	if why != recallAsked {
		hits = hits[:min(startCards, len(hits))]
	}
	text, used := recalled.Pack(hits[:min(recallCards, len(hits))], m.recallTokens(), m.Counter.Count)
	for _, h := range used {
		rec.Cards = append(rec.Cards, m.cardRef(h))
	}
	if len(used) > 0 {
		rec.Text = text
	}
	return rec, nil
}

func (m *Memory) recallTokens() int { return max(minRecallTokens, m.State().Model.EAS/recallShare) }

// aboutProject returns the ids of other tasks' cards about the task's project.
func (m *Memory) aboutProject() map[string]bool {
	ids, repo := make(map[string]bool), m.State().Opened.Repo
	if repo == "" {
		return ids
	}
	for _, c := range m.layers.Visible(knowledgebase.Query{}) {
		if c.Scope.Repo == repo && !m.claims(c) {
			ids[c.ID] = true
		}
	}
	return ids
}

// eachOnce keeps one card for each topic: the first of the most trusted. Tasks that met the
// same failure leave a card each.
func eachOnce(hits []recalled.Hit) []recalled.Hit {
	at := make(map[string]int)
	var out []recalled.Hit
	for _, h := range hits {
		key := h.Card.Scope.Repo + "\n" + failure.Normal(h.Card.Topic)
		i, said := at[key]
		switch {
		case !said:
			at[key] = len(out)
			out = append(out, h)
		case out[i].Trust.Rung == recalled.Hypothesis && h.Trust.Rung != recalled.Hypothesis:
			out[i] = h
		}
	}
	return out
}

// search searches all cards, and those in about, if any, by less evidence.
func (m *Memory) search(ctx context.Context, query string, about map[string]bool) ([]recalled.Hit, error) {
	if query == "" {
		return nil, nil
	}
	queries := []knowledgebase.Query{{Text: query}}
	if len(about) > 0 {
		queries = append(queries, knowledgebase.Query{Text: query, Among: about, MinEvidence: projectEvidence})
	}
	var answers [][]recalled.Hit
	for _, q := range queries {
		q.K, q.Own, q.Trust = recallCards, m.wrote(), m.trust
		hits, err := m.layers.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		answers = append(answers, hits)
	}
	return interleave(answers), nil
}

// interleave returns the first of each answer, then the second of each, and so on, without
// duplicates.
func interleave(answers [][]recalled.Hit) []recalled.Hit {
	var out []recalled.Hit
	seen := make(map[string]bool)
	for i := range recallCards {
		for _, hits := range answers {
			if i < len(hits) && !seen[hits[i].Card.ID] {
				seen[hits[i].Card.ID] = true
				out = append(out, hits[i])
			}
		}
	}
	return out
}

// Query searches the cards for the model's query and returns the text it is shown. The record
// is also returned with the error that the cards cannot be searched.
func (m *Memory) Query(ctx context.Context, text string) (string, *op.CardsRecalled, error) {
	rec, err := m.findCards(ctx, text, recallAsked)
	if err != nil {
		return "", nil, err
	}
	if rec.Error != "" {
		return "", rec, fmt.Errorf("the knowledge base cannot be searched: %s", rec.Error)
	}
	if rec.Text == "" {
		return "No card fits.", rec, nil
	}
	return rec.Text, rec, nil
}

// Reopen returns a recorded operation, up to a size that the model can attend to.
func (m *Memory) Reopen(seq uint64, from int) (string, error) {
	if seq > m.State().Last {
		return "", fmt.Errorf("op %d does not exist; the last is op %d", seq, m.State().Last)
	}
	o, err := m.Op(seq)
	if err != nil {
		return "", err
	}
	return reopened(o, from, min(max(m.State().Model.EAS, minReopened), maxReopened))
}

// reopened returns an operation as recall shows it: quoted as data, from byte from, at most n
// bytes, cut between runes.
func reopened(o op.Op, from, n int) (string, error) {
	text := state.OpText(o)
	if from > len(text) {
		return "", fmt.Errorf("op %d has only %d bytes, and from is %d", o.Seq, len(text), from)
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	end := max(from, quote.RuneStart(text, from+n))
	head := fmt.Sprintf("op %d (%s, step %d), as it was recorded then, quoted:", o.Seq, o.Kind(), o.Step)
	foot := ""
	if from > 0 || end < len(text) {
		foot = fmt.Sprintf("\nThese are bytes %d to %d of %d", from, end, len(text))
		if end < len(text) {
			foot += fmt.Sprintf("; recall with op %d and from %d returns the next part", o.Seq, end)
		}
		foot += "."
	}
	return head + "\n| " + strings.ReplaceAll(text[from:end], "\n", "\n| ") + foot, nil
}
