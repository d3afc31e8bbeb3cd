package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/consult"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/projection"
	"anamnesis/orchestrator/state/steps"
	"anamnesis/orchestrator/taskdir"
)

// Passes runs the anamnesis pass over the operations that a jump discards, if the rule requires
// it: the jump's own span, or all discarded spans that the context still holds in full, exceed
// the effective attention span. Each line of states gets a block at its own place. A pass that
// an earlier process made for this jump is reused: nothing is compacted before the jump's intent
// is recorded, so the spans are the same.
func (m *Memory) Passes(ctx, keep context.Context, j *state.Pending, discarded []int) error {
	trigger, steps := m.State().PassFor(j.To, discarded, j.Compact)
	if trigger == "" {
		return nil
	}
	for _, span := range m.State().Steps.Branches(steps) {
		if err := m.pass(ctx, keep, j, span, trigger); err != nil {
			return err
		}
	}
	return nil
}

// pass runs one anamnesis pass over one line of discarded steps.
func (m *Memory) pass(ctx, keep context.Context, j *state.Pending, span []int, trigger string) error {
	r := m.State().Steps.Ranges(span)[0]
	if slices.ContainsFunc(j.Passes, func(p projection.Pass) bool { return slices.Contains(p.Ranges, r) }) {
		return nil
	}
	ops, err := m.Ops(r)
	if err != nil {
		return err
	}
	first, last := m.State().Steps.At(span[0]), m.State().Steps.At(span[len(span)-1])
	req := m.passRequest(r, ops)
	req.From, req.To, req.Reason, req.Starts = last.ID, first.Parent, last.LeftBy, []int{first.Parent}
	req.Attempt = len(m.State().Jump.Backward(first.Parent)) + 1
	if last.ID == m.State().Current { // this jump leaves it; an earlier one left the others
		req.To, req.Reason, req.Attempt = j.To, j.Reason, len(m.State().Jump.Backward(j.To))+1
		req.Told = true // in the notice of the jump
	}
	return m.runPass(ctx, keep, passModel{m, m.o.Model}, req, &op.PassDone{Trigger: trigger})
}

// passRequest returns the part of a request that every pass over a range has. The range's end
// identifies the pass: repeated, it writes the same cards.
func (m *Memory) passRequest(r op.Range, ops []op.Op) anamnesis.Request {
	return anamnesis.Request{
		Task: m.ID, JumpSeq: r.Last, WorldDir: m.dir, Repo: m.State().Opened.Repo,
		EAS: m.State().Model.EAS, Ops: ops, Ranges: []op.Range{r}, Shown: m.lineage(),
		Count: m.Counter.Count, Now: m.Now(), ModelName: m.State().Model.Name,
	}
}

// runPass runs a pass and records it. Its cards are durable before the operation that names
// them. done contains the purpose of the pass; the rest is filled in. If asks is nil, no model
// is asked.
func (m *Memory) runPass(ctx, keep context.Context, asks consult.Model, req anamnesis.Request,
	done *op.PassDone) error {
	var limits *anamnesis.Options
	if req.Over {
		limits = &anamnesis.Options{MaxCalls: finalPassCalls, Timeout: finalPassTimeout}
	}
	if m.o.Model == nil && asks != nil { // beside another agent
		limits = &anamnesis.Options{MaxCalls: finalPassCalls, Timeout: besidePassTimeout}
		asks = m.reader(ctx, &req, done)
	}
	req.NoCards = done.Trigger == op.TriggerUser
	if n := len(req.Ranges); n > 0 {
		var err error
		if req.Tainted, err = m.taintedBefore(req.Ranges[n-1].First); err != nil {
			return err
		}
	}
	if asks != nil && m.o.Passing != nil {
		begun := op.PassBegun{Trigger: done.Trigger, Ranges: req.Ranges}
		asks = announced{asks, sync.OnceFunc(func() { m.o.Passing(begun) })}
	}
	res, err := anamnesis.Pass(ctx, asks, req, limits)
	if err != nil {
		return fmt.Errorf("anamnesis pass over ops %v: %w", req.Ranges, err)
	}
	done.Ranges, done.RangeTokens, done.EAS = req.Ranges, m.State().RangeTokens(req.Ranges), req.EAS
	done.Block, done.Writer, done.Dropped = res.Block, res.Writer, res.Dropped
	done.Fallback = cmp.Or(done.Fallback, res.Fallback)
	done.NoCards = res.NoCards
	done.Cards, done.NotWritten = m.putCards(keep, res.Cards)
	done.Lessons, done.Paired = m.hashes(res.Cards, nil), m.hashes(res.Cards, res.Paired)
	done.Calls, done.Usage, done.Millis = res.Calls, res.Usage, m.Now().Sub(req.Now).Milliseconds()
	return m.Record(keep, done)
}

// putCards writes cards and returns the ids of those that the knowledge base holds now. A card that a user
// has reviewed since it was last written stays as it is. notWritten says which could not be written, and why.
func (m *Memory) putCards(ctx context.Context, cards []*card.Card) (ids, notWritten []string) {
	ids = []string{}
	for _, c := range cards {
		stored, err := m.cards.Apply(ctx, knowledgebase.Change{Cards: []*card.Card{c}})
		id := c.ID
		switch {
		case errors.As(err, new(*knowledgebase.ConflictError)):
		case err != nil:
			notWritten = append(notWritten, fmt.Sprintf("%s: %v", c.ID, err))
			continue
		default:
			id = stored[0].ID
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, notWritten
}

// Learned writes the draft of a card with what the agent learned on the path that a jump leaves, and returns its id;
// empty if nothing was learned or the card cannot be written: the jump's intent holds the words.
func (m *Memory) Learned(ctx context.Context, learned string, ranges []op.Range) (id string, err error) {
	if strings.TrimSpace(learned) == "" || len(ranges) == 0 {
		return "", nil
	}
	req := m.passRequest(ranges[len(ranges)-1], nil)
	req.Ranges = ranges
	if req.Ops, err = m.Ops(ranges...); err != nil {
		return "", err
	}
	if req.Tainted, err = m.taintedBefore(ranges[0].First); err != nil {
		return "", err
	}
	ids, _ := m.putCards(ctx, []*card.Card{anamnesis.LearnedCard(&req, learned)})
	return strings.Join(ids, ""), nil
}

// besidePassTimeout limits a pass beside another agent, whose hooks or whose call wait for it.
const besidePassTimeout = 40 * time.Second

// reader returns the model that reads the sessions of another agent; nil if none can be asked.
func (m *Memory) reader(ctx context.Context, req *anamnesis.Request, done *op.PassDone) consult.Model {
	if m.o.Reader == nil {
		return nil
	}
	reads, eas, err := m.o.Reader(ctx, m.State().Spent().USD)
	if err != nil {
		done.Fallback = err.Error()
	}
	if err != nil || reads == nil {
		return nil
	}
	req.EAS, req.ModelName = min(req.EAS, eas), reads.Name()
	return passModel{m, reads}
}

// taintedBefore returns the files that held text from outside the world before op seq.
func (m *Memory) taintedBefore(seq uint64) ([]string, error) {
	if seq <= 1 {
		return nil, nil
	}
	if m.taint == nil {
		m.taint = anamnesis.NewTaintLog(m.dir)
	}
	if first := m.taint.Last() + 1; first < seq {
		ops, err := m.Ops(op.Range{First: first, Last: seq - 1})
		if err != nil {
			return nil, err
		}
		for i := range ops {
			m.taint.Add(&ops[i])
		}
	}
	return m.taint.Before(seq), nil
}

// passModel lets the anamnesis pass ask a model.
type passModel struct {
	m    *Memory
	asks model.Model
}

// Complete asks for one text. The turn counts passes, so that a recording finds its place.
func (p passModel) Complete(ctx context.Context, system, text string) (consult.Completion, error) {
	reply, err := p.asks.Ask(ctx, model.Request{
		Purpose: model.PurposePass, Turn: p.m.State().Totals.Passes,
		Messages: []model.Message{{Role: model.RoleSystem, Text: system}, {Role: model.RoleUser, Text: text}},
	}, nil)
	if err != nil {
		return consult.Completion{}, err
	}
	return consult.Completion{Text: reply.Text, Usage: reply.Usage}, nil
}

// announced is a model whose first question is announced. A pass asks none if its EAS has no room for one.
type announced struct {
	consult.Model
	announce func()
}

// Complete announces the question and asks it.
func (a announced) Complete(ctx context.Context, system, text string) (consult.Completion, error) {
	a.announce()
	return a.Model.Complete(ctx, system, text)
}

// CompactOldest runs a pass over the oldest steps, left or not, and replaces them by its block.
// The work of those steps remains in the world.
func (m *Memory) CompactOldest(ctx, keep context.Context, act state.Action) error {
	first, last := m.State().Steps.At(act.Steps[0]), m.State().Steps.At(act.Steps[len(act.Steps)-1])
	r := op.Range{First: first.First, Last: last.Last}
	ops, err := m.Ops(r)
	if err != nil {
		return err
	}
	effects := notice.LedgerOf(m.dir, ops).Effects
	// The block of an earlier pass already replaces these.
	ops = slices.DeleteFunc(ops, func(o op.Op) bool {
		return m.State().Steps.At(o.Step).Compacted && o.Kind() != op.KindPassDone && o.Kind() != op.KindJumpIntended
	})
	on := m.State().Steps.PathSet(m.State().Current)
	// A jump has already carried over the words of the steps it left.
	words := slices.DeleteFunc(slices.Clone(ops), func(o op.Op) bool { return !on[o.Step] })
	left := slices.DeleteFunc(slices.Clone(act.Steps), func(id int) bool { return on[id] })
	req := m.passRequest(r, ops)
	req.From, req.To, req.Starts = first.ID, last.ID, []int{first.Parent}
	req.Standing, req.Left, req.Effects = true, steps.IDRanges(left), effects
	req.Live = make(map[int]int, len(on))
	for id, live := range on {
		if live {
			req.Live[id] = m.State().Steps.At(id).Parent
		}
	}
	return m.runPass(ctx, keep, passModel{m, m.o.Model}, req, &op.PassDone{
		Trigger: op.TriggerWindow, Target: act.Target,
		Words: notice.WordsOf(words, nil, notice.WordsOfCompacted, m.Counter.Count),
	})
}

// Mask records the masking of results, each with the line that replaces it.
func (m *Memory) Mask(ctx context.Context, act state.Action) error {
	b := &op.ContextMasked{Before: m.State().Context.Tokens, Limit: act.Limit, Target: act.Target, Why: act.Reason}
	b.After = b.Before
	shown := make(map[uint64]int, len(act.Seqs)) // tokens of each result
	for _, e := range m.State().Context.Entries {
		if e.Msg.Role == model.RoleTool {
			shown[e.Seq] = e.Tok - e.MarkTok
		}
	}
	for _, seq := range act.Seqs {
		r, err := taskdir.ReadBody[*op.ToolReturned](m.Journal.Log(), seq)
		if err != nil {
			return fmt.Errorf("mask a result: %w", err)
		}
		line := notice.MaskLine(seq, r)
		tok := m.Journal.Count(line)
		b.Results = append(b.Results, op.MaskedResult{Seq: seq, Line: line, Tok: tok})
		if n, ok := shown[seq]; ok {
			b.After -= n - tok
		}
	}
	return m.Record(ctx, b)
}

// ErrNothingToCompact: the context holds no steps that are old and long enough to be compacted.
var ErrNothingToCompact = errors.New("nothing to compact: a block would be longer than the older steps")

// Compact replaces all steps but the newest by a block, whatever the size of the context,
// and returns the tokens of the context before and after. It must not be called while the
// task runs.
func (m *Memory) Compact(ctx context.Context) (before, after int, err error) {
	if err := m.ApplyQueued(); err != nil {
		return 0, 0, err
	}
	before = m.State().Context.Tokens
	steps := m.State().Compactable()
	if len(steps) == 0 {
		return before, before, ErrNothingToCompact
	}
	err = m.CompactOldest(ctx, context.WithoutCancel(ctx), state.Action{Steps: steps})
	return before, m.State().Context.Tokens, err
}
