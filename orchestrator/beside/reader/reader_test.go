package reader

import (
	"context"
	"errors"
	"testing"

	"anamnesis/orchestrator/model"
)

// asked is a model that says whether it was asked in vain, and what happens meanwhile.
type asked struct{ meanwhile func() }

func (asked) Name() string { return "m" }

func (a asked) Ask(ctx context.Context, _ model.Request, _ func(model.Delta)) (model.Reply, error) {
	a.meanwhile()
	return model.Reply{}, ctx.Err()
}

// TestReader: a model is asked until an event waits; then the request under way ends, and each one after it.
func TestReader(t *testing.T) {
	var r Reader
	if m, eas, err := r.Choose(t.Context(), 1); m != nil || eas != 0 || err != nil {
		t.Errorf("no model: %v, %d, %v", m, eas, err)
	}
	r.End() // before any request
	waits, meanwhile, broken := false, func() {}, errors.New("broken")
	r.Waits = func() bool { return waits }
	r.From = func(_ context.Context, spent float64) (model.Model, int, error) {
		switch spent {
		case 2:
			return nil, 9, nil
		case 3:
			return asked{}, 9, broken
		}
		return asked{func() { meanwhile() }}, 9, nil
	}
	for spent, want := range map[float64]error{2: nil, 3: broken} {
		if m, eas, err := r.Choose(t.Context(), spent); m != nil || eas != 0 || !errors.Is(err, want) {
			t.Errorf("%v spent: %v, %d, %v", spent, m, eas, err)
		}
	}
	m, eas, err := r.Choose(t.Context(), 1)
	if err != nil || eas != 9 {
		t.Fatal(eas, err)
	}
	ask := func() error {
		_, err := m.Ask(t.Context(), model.Request{}, nil)
		return err
	}
	if err := ask(); err != nil {
		t.Errorf("no event waits: %v", err)
	}
	meanwhile = r.End
	if err := ask(); !errors.Is(err, context.Canceled) {
		t.Errorf("an event came meanwhile: %v", err)
	}
	meanwhile = func() {}
	if err := ask(); !errors.Is(err, context.Canceled) {
		t.Errorf("an event came before: %v", err)
	}
	if m, _, err = r.Choose(t.Context(), 1); err != nil || ask() != nil {
		t.Errorf("chosen anew: %v", err)
	}
	waits = true
	if m, _, err = r.Choose(t.Context(), 1); err != nil || !errors.Is(ask(), context.Canceled) {
		t.Errorf("chosen while an event waits: %v", err)
	}
}
