package runtime

import (
	"context"
	"errors"

	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/tool"
)

// taskTimeline is the task as the tools jump_to_step and recall see it. The loop waits for its
// tools, so the state does not change meanwhile.
type taskTimeline struct {
	ledger *journal.Ledger
	memory *memory.Memory
}

// CheckJump returns why a jump to a step is impossible, if it is.
func (tl taskTimeline) CheckJump(to int) error { return tl.ledger.State().CanJump(to, false) }

// Recall returns a recorded operation, or searches the cards.
func (tl taskTimeline) Recall(ctx context.Context, what tool.Memory) (string, error) {
	if what.Op > 0 {
		return tl.memory.Reopen(what.Op, what.From)
	}
	text, rec, err := tl.memory.Query(ctx, what.Query)
	if rec == nil {
		return "", err
	}
	return text, errors.Join(err, tl.ledger.Journal.Post(context.WithoutCancel(ctx), rec))
}
