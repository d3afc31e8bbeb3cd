package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"anamnesis/anamnesis"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/usage"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// countCards tells the counters which cards the task was shown and, once a
// turn was answered, how its last check ended. Whoever closes the task after a
// crash tells what was missed: nothing counts twice.
func (t *Task) countCards() error {
	if t.cards == nil || t.unusable || !t.state.Recalled || t.state.Last == t.takenOver {
		return nil
	}
	e, err := t.experienced()
	if errors.Is(err, opstream.ErrCorrupt) && t.state.Totals.CardsRecalled == 0 {
		return nil // damage in a stream that showed no card is reported where it matters
	}
	if err != nil {
		return fmt.Errorf("count the task's cards: %w", err)
	}
	ending := usage.Unknown
	if end := t.state.Turn.End; end != nil && end.Reason == "done" {
		ending = e.Ending()
	}
	if err := t.cards.Count(e.Events(t.ID, ending, false)...); err != nil {
		return err
	}
	return t.retireContradicted(e)
}

// experienced returns what the task's operations say of cards so far.
func (t *Task) experienced() (*anamnesis.Experience, error) {
	t.seenMu.Lock()
	defer t.seenMu.Unlock()
	err := taskdir.EachDecoded(t.journal.Log().Since(t.experience.Last), func(o op.Op) error {
		t.experience.Add(&o)
		return nil
	})
	e := t.experience // a copy: another call may add to it
	return &e, err
}

// openCards opens the global cards, where new ones are written, and the
// project's own, where it has any.
func (t *Task) openCards(global string) error {
	o := knowledgebase.Options{Watch: true, Embedder: t.opts.Embedder, Redact: t.journal.Redactor().Markers}
	var err error
	if t.cards, err = knowledgebase.Open(global, &o); err != nil {
		return err
	}
	t.layers = knowledgebase.Layers{t.cards}
	own := filepath.Join(t.Dir, filepath.FromSlash(knowledgebase.ProjectDir))
	if info, err := os.Stat(own); err != nil || !info.IsDir() || own == global {
		return nil
	}
	project, err := knowledgebase.Open(own, o.ForProject(global))
	if err != nil {
		return fmt.Errorf("the project's own cards: %w", err)
	}
	t.layers = knowledgebase.Layers{project, t.cards}
	return nil
}
