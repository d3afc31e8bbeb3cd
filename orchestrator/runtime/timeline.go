package runtime

import (
	"context"
	"errors"

	"anamnesis/orchestrator/tool"
)

// taskTimeline is what the tools jump_to_step and recall see of the task. The
// loop waits for its tools, so the state does not change under them.
type taskTimeline struct{ t *Task }

// CheckJump reports whether a jump to a step can be made.
func (tl taskTimeline) CheckJump(to int) error {
	return tl.t.State().CanJump(to)
}

// Recall opens an operation again, or searches the cards.
func (tl taskTimeline) Recall(ctx context.Context, what tool.Memory) (string, error) {
	t := tl.t
	if what.Op > 0 {
		return t.Reopen(what.Op, what.From)
	}
	text, rec, err := t.Query(ctx, what.Query)
	if rec == nil {
		return "", err
	}
	return text, errors.Join(err, t.Journal.Post(context.WithoutCancel(ctx), rec))
}
