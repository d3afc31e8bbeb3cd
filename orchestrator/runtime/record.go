package runtime

import (
	"context"
	"fmt"
	"strings"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// sign puts the task's word into the marks of a body and takes it out of results.
// Text of files is left as it is, so that an edit matches it.
func (t *Task) sign(b op.Body) {
	texts := func(in ...*string) {
		for _, text := range in {
			*text = notice.Signed(*text, t.word)
		}
	}
	switch b := b.(type) {
	case *op.NoticeGiven:
		texts(&b.Text)
	case *op.JobEnded:
		texts(&b.Notice)
	case *op.WorldChanged:
		texts(&b.Notice)
	case *op.WorldRestored:
		texts(&b.Notice)
	case *op.StrategyGiven:
		texts(&b.Text)
	case *op.TaskResumed:
		texts(&b.Notice)
	case *op.WorldSaved:
		texts(&b.Mark)
	case *op.PassDone:
		texts(&b.Block)
	case *op.JumpDone:
		texts(&b.Notice)
	case *op.ToolReturned:
		if len(b.Reads) == 0 && len(b.Writes) == 0 {
			b.Text = notice.Visible(b.Text)
			if t.word != "" {
				b.Text = strings.ReplaceAll(b.Text, t.word, notice.MaskedWord)
			}
		}
	}
}

// schedule records a jump request unless one is pending: ErrPending.
func (t *Task) schedule(ctx context.Context, j *op.JumpRequested) error {
	entries, bodies, err := t.encode(j)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.scheduled != "" {
		return fmt.Errorf("%s is %w; one step makes one jump or sends one D-Mail", t.scheduled, taskdir.ErrPending)
	}
	t.scheduled = jumpOrMail(j)
	return t.appendLocked(ctx, entries, bodies...)
}

// Record appends operations and folds them, with everything posted before.
// Only Run's goroutine may call it.
func (t *Task) record(ctx context.Context, bodies ...op.Body) error {
	if err := t.post(ctx, bodies...); err != nil {
		return err
	}
	return t.settle()
}

// post makes operations durable, in one write. They are folded when Run's
// goroutine next looks, so that the state is never changed under it.
func (t *Task) post(ctx context.Context, bodies ...op.Body) error {
	entries, bodies, err := t.encode(bodies...)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.appendLocked(ctx, entries, bodies...)
}

// postOne is post for one operation; it gives its number.
func (t *Task) postOne(ctx context.Context, body op.Body) (uint64, error) {
	entries, bodies, err := t.encode(body)
	if err != nil {
		return 0, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.appendLocked(ctx, entries, bodies...); err != nil {
		return 0, err
	}
	return t.last, nil
}

// encode makes stream entries of operations, and gives them as they are
// recorded: without secrets. Everything that is folded, shown or sent comes
// from what it returns.
func (t *Task) encode(bodies ...op.Body) ([]opstream.Entry, []op.Body, error) {
	entries, redacted := make([]opstream.Entry, len(bodies)), make([]op.Body, len(bodies))
	for i, b := range bodies {
		t.sign(b)
		b, data, err := t.redactBody(b)
		if err != nil {
			return nil, nil, err
		}
		entries[i] = opstream.Entry{Kind: string(b.Kind()), Tok: state.CountBody(b, t.countText), Body: data}
		redacted[i] = b
	}
	return entries, redacted, nil
}

// maxCounted is how many bytes of one operation are counted; the rest of a
// monstrous one is taken to be like its beginning. Counting runs at about
// 1 MB/s, and the person may be waiting for the turn to end.
const maxCounted = 1 << 20

func (t *Task) countText(text string) int {
	if len(text) <= maxCounted {
		return t.counter.Count(text)
	}
	head := strings.ToValidUTF8(text[:maxCounted], "")
	return int(float64(t.counter.Count(head)) * float64(len(text)) / float64(len(head)))
}

// appendLocked appends encoded bodies to the stream; t.mu is held.
func (t *Task) appendLocked(ctx context.Context, entries []opstream.Entry, bodies ...op.Body) error {
	if t.log == nil {
		return fmt.Errorf("record %s: %w", bodies[0].Kind(), taskdir.ErrNotLive) // closed meanwhile
	}
	for i := range entries {
		entries[i].Step = t.step
	}
	first, err := t.log.Append(ctx, entries...)
	if err != nil {
		return fmt.Errorf("record %s: %w", bodies[0].Kind(), err)
	}
	if err := t.logOwnLocked(first); err != nil {
		return err
	}
	t.last = first + uint64(len(bodies)) - 1
	for i, b := range bodies {
		o := op.Op{Seq: first + uint64(i), Step: t.step, Tok: entries[i].Tok, Time: t.opts.Now(), Body: b}
		if t.opts.Event != nil {
			t.opts.Event(o)
		}
		if k, ok := b.(*op.OutputKept); ok { // what a call prints must not wait in memory; Fold does not look at it
			o.Body = &op.OutputKept{Call: k.Call, Part: k.Part, From: k.From}
		}
		t.queue = append(t.queue, o)
		if b.Kind() == op.KindWorldSaved {
			t.step++
		}
	}
	return nil
}

// logOwnLocked queues the lines that the log wrote by itself before seq: it
// seals the stream when nothing was appended for a while.
func (t *Task) logOwnLocked(seq uint64) error {
	for missed := t.last + 1; missed < seq; missed++ {
		rec, err := t.log.Get(missed)
		if err != nil {
			return fmt.Errorf("read op %d: %w", missed, err)
		}
		o, err := taskdir.Decode(rec)
		if err != nil {
			return err
		}
		t.queue = append(t.queue, o)
	}
	return nil
}

// settle folds what was posted. Only Run's goroutine may call it.
func (t *Task) settle() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	var ended []string // subagents
	for _, o := range t.queue {
		if err := t.fold(o); err != nil {
			return err
		}
		if b, ok := o.Body.(*op.SubagentEnded); ok {
			ended = append(ended, b.Task)
		}
	}
	t.queue = t.queue[:0]
	t.publishLocked()
	t.opts.family.tell(t.ID, t.state.Spent(), ended)
	return nil
}

func (t *Task) publish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publishLocked()
}

func (t *Task) publishLocked() {
	t.last = max(t.last, t.state.Last)
	t.step = t.state.NextStep()
	t.scheduled, t.marked, t.todos = "", len(t.state.Marked), t.state.Todos
	if p := t.state.Pending; p != nil {
		t.scheduled = jumpOrMail(&p.JumpRequested)
	}
	t.ended, t.valid = t.step, t.state.ValidSteps()
}
