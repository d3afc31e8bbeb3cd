package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"anamnesis/anamnesis"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// passes runs the anamnesis pass over what the jump discards, when the rule
// asks for it: when the jump's own span, or all discarded spans the context
// still holds in full, are more than the model attends to. Each line of states
// gets a block at its own place. A D-Mail always folds. A pass that an earlier process made for this
// jump is not made again: until the jump's intent is recorded nothing is folded,
// so the same spans are found.
func (t *Task) passes(ctx, keep context.Context, j *state.Pending, discarded []int) error {
	if j.Mail != nil {
		return t.mailPass(keep, j)
	}
	trigger, steps := t.state.PassFor(j.To, discarded, j.Fold)
	if trigger == "" {
		return nil
	}
	for _, span := range t.state.Branches(steps) {
		if err := t.pass(ctx, keep, j, span, trigger); err != nil {
			return err
		}
	}
	return nil
}

// pass runs one anamnesis pass over one line of discarded steps.
func (t *Task) pass(ctx, keep context.Context, j *state.Pending, span []int, trigger string) error {
	r := t.state.Ranges(span)[0]
	if slices.ContainsFunc(j.Passes, func(p state.PassRecord) bool { return slices.Contains(p.Ranges, r) }) {
		return nil
	}
	ops, err := t.ops(r)
	if err != nil {
		return err
	}
	first, last := t.state.Steps.At(span[0]), t.state.Steps.At(span[len(span)-1])
	req := t.passRequest(r, ops)
	req.From, req.To, req.Reason, req.Starts = last.ID, first.Parent, last.LeftBy, []int{first.Parent}
	req.Attempt = len(t.state.BackwardJumps(first.Parent)) + 1
	if last.ID == t.state.Current { // this jump leaves it; an earlier one left the others
		req.To, req.Reason, req.Attempt = j.To, j.Reason, len(t.state.BackwardJumps(j.To))+1
	}
	return t.runPass(ctx, keep, passModel{t}, req, &op.PassDone{Trigger: trigger})
}

// passRequest is what every pass over a range is asked with. The range's end
// identifies the pass: made again, it writes the same cards.
func (t *Task) passRequest(r op.Range, ops []op.Op) anamnesis.Request {
	return anamnesis.Request{
		Task: t.ID, JumpSeq: r.Last, WorldDir: t.Dir, Repo: t.state.Opened.Repo, Goal: t.state.Request,
		EAS: t.state.EAS, Ops: ops, Ranges: []op.Range{r}, Shown: t.lineage(),
		Count: t.counter.Count, Now: t.now(), ModelName: t.state.Model,
	}
}

// runPass makes a pass and records it. Cards are durable before the operation
// that names them. done says what the pass is for; the rest is filled in. m is
// nil where no model is to be asked.
func (t *Task) runPass(ctx, keep context.Context, m anamnesis.Model, req anamnesis.Request, done *op.PassDone) error {
	r := req.Ranges[len(req.Ranges)-1]
	var err error
	if req.Tainted, err = t.taintedBefore(r.First); err != nil {
		return err
	}
	var limits *anamnesis.Options
	if req.Over {
		limits = &anamnesis.Options{MaxCalls: finalPassCalls, Timeout: finalPassTimeout}
	}
	if m != nil && t.model != nil && t.opts.Passing != nil {
		t.opts.Passing(op.PassBegun{Trigger: done.Trigger, Ranges: req.Ranges})
	}
	res, err := anamnesis.Pass(ctx, m, req, limits)
	if err != nil {
		return fmt.Errorf("anamnesis pass over ops %s: %w", r, err)
	}
	done.Ranges, done.RangeTokens, done.EAS = req.Ranges, t.state.RangeTokens(req.Ranges), req.EAS
	done.Block, done.Writer, done.Dropped = res.Block, res.Writer, res.Dropped
	done.Fallback = cmp.Or(done.Fallback, res.Fallback)
	done.NoCards = res.NoCards
	done.Cards, done.NotWritten = t.putCards(keep, res.Cards)
	done.Observed = t.observed(res.Cards, res.Observed)
	done.Calls, done.Usage, done.Millis = res.Calls, res.Usage, t.now().Sub(req.Now).Milliseconds()
	return t.record(keep, done)
}

// taintedBefore lists the files that held text from outside the world before
// op seq.
func (t *Task) taintedBefore(seq uint64) ([]string, error) {
	if seq <= 1 {
		return nil, nil
	}
	if t.taint == nil {
		t.taint = anamnesis.NewTaintLog(t.Dir)
	}
	if first := t.taint.Last() + 1; first < seq {
		ops, err := t.ops(op.Range{First: first, Last: seq - 1})
		if err != nil {
			return nil, err
		}
		for i := range ops {
			t.taint.Add(&ops[i])
		}
	}
	return t.taint.Before(seq), nil
}

// putCards writes cards. One that a user has reviewed since an earlier try of
// the same pass is left as they want it; one that cannot be written is
// reported and does not keep the jump from being made.
func (m *memory) putCards(ctx context.Context, cards []*card.Card) (ids, notWritten []string) {
	ids = []string{}
	for _, c := range cards {
		stored, err := m.cards.Apply(ctx, knowledgebase.Change{Cards: []*card.Card{c}})
		var conflict *knowledgebase.ConflictError
		switch {
		case errors.As(err, &conflict):
			ids = append(ids, c.ID)
		case err != nil:
			notWritten = append(notWritten, fmt.Sprintf("%s: %v", c.ID, err))
		case !slices.Contains(ids, stored[0].ID):
			ids = append(ids, stored[0].ID) // where the lesson was known, the card that had it
		}
	}
	return ids, notWritten
}
