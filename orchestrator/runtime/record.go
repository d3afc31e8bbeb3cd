package runtime

import (
	"context"
	"fmt"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/taskdir"
)

// schedule records a jump request unless one is pending: ErrPending.
func (t *ledger) schedule(ctx context.Context, j *op.JumpRequested) error {
	return t.journal.PostWith(ctx, func(p *journal.Public) (op.Body, error) {
		if p.Scheduled != "" {
			return nil, fmt.Errorf("%s is %w; one step makes one jump or sends one D-Mail", p.Scheduled, taskdir.ErrPending)
		}
		p.Scheduled = journal.Scheduled(j)
		return j, nil
	})
}

// record appends operations and folds them, with everything posted before.
// Only Run's goroutine may call it.
func (t *ledger) record(ctx context.Context, bodies ...op.Body) error {
	if err := t.journal.Post(ctx, bodies...); err != nil {
		return err
	}
	return t.settle()
}

// settle folds what was posted. Only Run's goroutine may call it.
func (t *ledger) settle() error {
	var ended []string // subagents
	err := t.journal.Settle(&t.state, func(o op.Op) error {
		if b, ok := o.Body.(*op.SubagentEnded); ok {
			ended = append(ended, b.Task)
		}
		return t.fold(o)
	})
	if err != nil {
		return err
	}
	t.opts.family.tell(t.ID, t.state.Spent(), ended)
	return nil
}
