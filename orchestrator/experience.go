package orchestrator

import (
	"fmt"

	"anamnesis/anamnesis"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream/op"
)

// Experienced reads a task's operations for what the counters of its cards
// need.
func Experienced(h Home, id string) (*anamnesis.Experience, error) {
	e := new(anamnesis.Experience)
	err := EachOp(h, id, func(o op.Op) error {
		e.Add(&o)
		return nil
	})
	return e, err
}

// countCards tells the counters which cards the task was shown and, once a
// turn was answered, how its last check ended. Whoever closes the task after a
// crash tells what was missed: nothing counts twice.
func (t *Task) countCards() error {
	if t.cards == nil || t.unusable || t.state.Totals.CardsRecalled == 0 || t.state.Last == t.found {
		return nil
	}
	var e anamnesis.Experience
	err := eachDecoded(t.log.Since(0), func(o op.Op) error {
		e.Add(&o)
		return nil
	})
	if err != nil {
		return fmt.Errorf("count the task's cards: %w", err)
	}
	ending := usage.Unknown
	if end := t.state.Turn.End; end != nil && end.Reason == "done" {
		ending = e.Ending()
	}
	return t.cards.Count(e.Events(t.ID, ending, false)...)
}
