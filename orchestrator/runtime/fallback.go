package runtime

import (
	"context"
	"errors"
	"net/http"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// maxFaults is how many requests in a row may fail transiently before the next model takes over.
const maxFaults = 5

// Next is a model that takes over, with what is recorded of it.
type Next struct {
	Model         model.Model
	Name, BaseURL string
	EAS           int
	EASFrom       string
	Window        int
}

// nextModel returns the model that takes over after a fault; nil if none does.
func (t *Task) nextModel(ctx context.Context, f *model.Fault, w *op.Wait) (*Next, error) {
	if t.opts.Fallback == nil || ctx.Err() != nil || !cannotAnswer(f, w) {
		return nil, nil
	}
	return t.opts.Fallback(ctx)
}

// cannotAnswer reports whether a fault says that the model will not answer soon.
func cannotAnswer(f *model.Fault, w *op.Wait) bool {
	if f.Kind == model.FaultRefused {
		switch f.Status {
		case http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusNotFound, http.StatusTooManyRequests:
			return true
		}
		return errors.Is(f.Err, model.ErrNoKey) || errors.Is(f.Err, model.ErrNoTools)
	}
	return f.Retryable && (f.RetryAfter > maxWait || f.Tries >= maxFaults || w != nil && w.Tries >= maxFaults)
}

// changeModel records a failed request and that another model takes over, which is asked from now on.
func (t *Task) changeModel(ctx context.Context, failed *op.ModelFailed, next *Next) error {
	why := t.Ledger.State().Model.Name + " cannot answer (" + failed.Error + ")"
	t.opts.Model = next.Model
	return t.Ledger.Record(ctx, failed, &op.TaskResumed{
		Model: next.Name, BaseURL: next.BaseURL, EAS: next.EAS, EASFrom: next.EASFrom, Window: next.Window,
		Program: t.opts.Program, Why: why,
	})
}
