//go:build unix

package console

import (
	"context"
	"errors"
	"fmt"

	"anamnesis/anamnesis/probe"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
)

// Probe measures a model and shows the progress on one line.
func (c *Console) Probe(ctx context.Context, m *session.Model, o probe.Options,
	notef func(format string, args ...any)) (probe.Result, error) {
	if view.IsTerminal(c.Err) {
		p := view.NewProgress(c.Err)
		defer p.Clear()
		o.Progress = func(at probe.Progress) { p.Draw(func() string { return show.EASProbeBar(at) }) }
	}
	m.OnRetry(func(at model.Attempt) {
		notef("asking again: %v", at.Fault)
	})
	return probe.Run(ctx, eas.TextModel{Model: m.Model, Purpose: model.PurposeProbe, ReplyTokens: o.ReplyTokens}, o)
}

// ProbeError returns the error of an interrupted probe, with its exit code.
func ProbeError(ctx context.Context, failed error) error {
	var fault *model.Fault
	switch {
	case errors.Is(failed, probe.ErrNoBase):
		return fmt.Errorf("eas probe: %w: nothing can be measured with these questions", failed)
	case ctx.Err() != nil:
		return exit.With(exit.Interrupted, errors.New("eas probe: interrupted"))
	case errors.As(failed, &fault) && (fault.Kind == model.FaultRefused || fault.Kind == model.FaultScript):
		return exit.Usagef("eas probe: %v; correct the key, the address or the model's name", failed)
	}
	return fmt.Errorf("eas probe: %w", failed)
}
