// Package reader lets the passes of a recorder ask the user's model while no event waits.
package reader

import (
	"context"
	"sync"

	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/model"
)

// Reader chooses the model of passes. The zero value chooses none.
type Reader struct {
	From  memory.Reader // nil: no model
	Waits func() bool   // reports whether an event waits

	mu     sync.Mutex
	ended  bool
	cancel context.CancelFunc // ends the last request
}

// Choose returns a model that can be asked until End is called; nil if there is none.
func (r *Reader) Choose(ctx context.Context, spent float64) (model.Model, int, error) {
	if r.From == nil {
		return nil, 0, nil
	}
	m, eas, err := r.From(ctx, spent)
	if m == nil || err != nil {
		return nil, 0, err
	}
	r.mu.Lock()
	// This is reset before the look: an event that arrives after the look calls End, which holds for this model.
	r.ended = false
	r.mu.Unlock()
	if r.Waits() {
		r.End()
	}
	return reading{m, r}, eas, nil
}

// End ends the request under way and refuses more, so that the extractor writes the rest.
func (r *Reader) End() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	if r.cancel != nil {
		r.cancel()
	}
}

// reading is a model whose requests end with its Reader.
type reading struct {
	model.Model
	r *Reader
}

func (m reading) Ask(ctx context.Context, req model.Request, on func(model.Delta)) (model.Reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m.r.mu.Lock()
	m.r.cancel = cancel
	if m.r.ended {
		cancel()
	}
	m.r.mu.Unlock()
	return m.Model.Ask(ctx, req, on)
}
