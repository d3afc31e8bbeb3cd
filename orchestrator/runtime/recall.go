package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/failure"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool"
)

// Limits of recall.
const (
	minRecallTokens = 400     // a recall may always be this long
	recallShare     = 8       // otherwise this part of the EAS
	recallCards     = 5       // cards looked at
	projectEvidence = 0.3     // of what another card needs: that a card is about the task's project says as much as a card found beside it
	minReopened     = 4_000   // bytes of an operation that recall shows at once, at least
	maxReopened     = 100_000 // and at most; in between, a byte for each token of the EAS: about a quarter of it
)

// recall looks for cards that fit the situation and records what was found,
// also when that is nothing.
func (t *Task) recall(ctx context.Context, why string) error {
	rec, err := t.findCards(ctx, t.state.Situation(why), why)
	if err != nil {
		return nil // interrupted: the recall stays due
	}
	if why == "start" {
		t.foresee(rec)
	}
	return t.record(context.WithoutCancel(ctx), rec)
}

// findCards searches and renders. A knowledge base that cannot be searched
// costs the recall and not the task; the only error is ctx's.
func (t *Task) findCards(ctx context.Context, parts []string, why string) (*op.CardsRecalled, error) {
	rec := &op.CardsRecalled{Query: strings.Join(parts, "\n"), Why: why, Cards: []op.CardRef{}}
	// What the experiment withholds is noted.
	trust := func(c *card.Card) knowledgebase.Trust {
		tr := t.trust(c)
		if !tr.Withheld && t.experiment(c) {
			if !slices.ContainsFunc(rec.Withheld, func(r op.CardRef) bool { return r.ID == c.ID }) {
				rec.Withheld = append(rec.Withheld, t.cardRef(knowledgebase.Hit{Card: c, Trust: tr}))
			}
			tr.Withheld = true
		}
		return tr
	}
	hits, err := t.searchParts(ctx, parts, why != "asked", trust)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		rec.Error = err.Error()
		return rec, nil
	}
	if err := t.cards.VectorError(); err == nil {
		t.degraded = ""
	} else if said := err.Error(); said != t.degraded {
		t.degraded, rec.Degraded = said, said
	}
	if why == "jump" {
		// What this task learned stands in its blocks already.
		hits = slices.DeleteFunc(hits, func(h knowledgebase.Hit) bool { return h.Card.SourceTask == t.ID })
	}
	hits = eachOnce(hits)
	hits = eachOnce(t.withLike(hits[:min(recallCards, len(hits))], trust))
	budget := max(minRecallTokens, t.state.EAS/recallShare)
	text, used := knowledgebase.Pack(hits, budget, t.counter.Count)
	for _, h := range used {
		rec.Cards = append(rec.Cards, t.cardRef(h))
	}
	if len(used) > 0 {
		rec.Text = text
	}
	return rec, nil
}

// withLike adds, briefly, the cards that nearly repeat one of the hits: cards about
// several failures of one kind differ in a word.
func (t *Task) withLike(hits []knowledgebase.Hit, trust func(*card.Card) knowledgebase.Trust) []knowledgebase.Hit {
	seen := make(map[string]bool)
	for _, h := range hits {
		seen[h.Card.ID] = true
	}
	for _, h := range hits {
		for _, id := range h.Also {
			c := t.card(id)
			if c == nil || seen[id] {
				continue
			}
			seen[id] = true
			if like := (knowledgebase.Hit{Card: c, Score: h.Score, Trust: trust(c), Brief: true}); !like.Trust.Withheld {
				hits = append(hits, like)
			}
		}
	}
	return hits
}

// eachOnce keeps one of the cards with one topic: the first of those that may be
// believed most. Tasks that met one failure leave a card each.
func eachOnce(hits []knowledgebase.Hit) []knowledgebase.Hit {
	at := make(map[string]int)
	var out []knowledgebase.Hit
	for _, h := range hits {
		key := h.Card.Scope.Repo + "\n" + failure.Normal(h.Card.Topic)
		i, said := at[key]
		switch {
		case !said:
			at[key] = len(out)
			out = append(out, h)
		case out[i].Trust.Rung == knowledgebase.Hypothesis && h.Trust.Rung != knowledgebase.Hypothesis:
			h.Brief = out[i].Brief
			out[i] = h
		}
	}
	return out
}

// searchParts searches for each part of the situation by itself: a card about
// the error need not account for the words of the request. If own is set, the last
// part is also searched for among the cards of the task's project.
func (t *Task) searchParts(ctx context.Context, parts []string, own bool, trust func(*card.Card) knowledgebase.Trust) ([]knowledgebase.Hit, error) {
	var queries []knowledgebase.Query
	for _, part := range parts {
		queries = append(queries, knowledgebase.Query{Text: part})
	}
	if about := t.lessons.project(t); own && len(about) > 0 {
		queries = append(queries, knowledgebase.Query{Text: parts[len(parts)-1], Among: about, MinEvidence: projectEvidence})
	}
	var answers [][]knowledgebase.Hit
	for _, q := range queries {
		q.K, q.Task, q.Trust = recallCards, t.ID, trust
		hits, err := t.layers.Search(ctx, q)
		if err != nil {
			return nil, err
		}
		answers = append(answers, hits)
	}
	return interleave(answers), nil
}

// interleave returns the first of each answer, then the second of each, and so
// on, every card once.
func interleave(answers [][]knowledgebase.Hit) []knowledgebase.Hit {
	var out []knowledgebase.Hit
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

// taskTimeline is what the tools jump_to_step and recall see of the task. The
// loop waits for its tools, so the state does not change under them.
type taskTimeline struct{ t *Task }

// CheckJump reports whether a jump to a step can be made.
func (tl taskTimeline) CheckJump(to int) error {
	return tl.t.state.CanJump(to)
}

// Recall opens an operation again, or searches the cards.
func (tl taskTimeline) Recall(ctx context.Context, what tool.Memory) (string, error) {
	t := tl.t
	if what.Op > 0 {
		return t.reopen(what.Op, what.From)
	}
	rec, err := t.findCards(ctx, []string{what.Query}, "asked")
	if err != nil {
		return "", err
	}
	if err := t.journal.Post(context.WithoutCancel(ctx), rec); err != nil {
		return "", err
	}
	switch {
	case rec.Error != "":
		return "", fmt.Errorf("the knowledge base cannot be searched: %s", rec.Error)
	case rec.Text == "":
		return "No card fits.", nil
	}
	return rec.Text, nil
}

// reopen shows an operation again, as far as the model can attend to it.
func (t *Task) reopen(seq uint64, from int) (string, error) {
	if seq > t.state.Last {
		return "", fmt.Errorf("there is no op %d; the last is op %d", seq, t.state.Last)
	}
	ops, err := t.ops(op.Range{First: seq, Last: seq})
	if err != nil {
		return "", err
	}
	return reopened(ops[0], from, min(max(t.state.EAS, minReopened), maxReopened))
}

// reopened is an operation as recall shows it: quoted as data, from byte from
// on, at most n bytes of it, cut between runes.
func reopened(o op.Op, from, n int) (string, error) {
	text := state.OpText(o)
	if from > len(text) {
		return "", fmt.Errorf("op %d has %d bytes; from %d there is nothing", o.Seq, len(text), from)
	}
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	end := min(from+n, len(text))
	for end < len(text) && end > from && !utf8.RuneStart(text[end]) {
		end--
	}
	head := fmt.Sprintf("op %d (%s, step %d), as it was recorded then, quoted:", o.Seq, o.Kind(), o.Step)
	foot := ""
	if from > 0 || end < len(text) {
		foot = fmt.Sprintf("\nThese are bytes %d to %d of %d", from, end, len(text))
		if end < len(text) {
			foot += fmt.Sprintf("; recall with op %d and from %d goes on", o.Seq, end)
		}
		foot += "."
	}
	return head + "\n| " + strings.ReplaceAll(text[from:end], "\n", "\n| ") + foot, nil
}

// passModel lets the anamnesis pass ask the task's own model.
type passModel struct{ t *Task }

// Complete asks for one text. The turn counts passes, so that a recording
// finds its place.
func (p passModel) Complete(ctx context.Context, system, text string) (anamnesis.Completion, error) {
	if p.t.model == nil {
		return anamnesis.Completion{}, errors.New("no model is configured")
	}
	reply, err := p.t.model.Ask(ctx, model.Request{
		Purpose: model.PurposePass, Turn: p.t.state.Totals.Passes,
		Messages: []model.Message{{Role: model.RoleSystem, Text: system}, {Role: model.RoleUser, Text: text}},
	}, nil)
	if err != nil {
		return anamnesis.Completion{}, err
	}
	return anamnesis.Completion{Text: reply.Text, Usage: reply.Usage}, nil
}

// endLeftovers ends the processes that the calls of a dead process left.
func endLeftovers(s *state.State) error {
	for _, c := range s.OpenCalls() {
		if c.Started != nil {
			if err := guard.EndLeftover(*c.Started); err != nil {
				return fmt.Errorf("end what call %s left running: %w", c.ID, err)
			}
		}
	}
	return nil
}
