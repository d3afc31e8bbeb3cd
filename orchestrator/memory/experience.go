package memory

import (
	"errors"
	"fmt"

	"anamnesis/anamnesis/experience"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/taskdir"
)

// CountTask adds the task to the facts of its repository, and to the counters of the cards that it was shown.
// After a crash, the next process that closes the task adds what is missing; nothing counts twice.
func (m *Memory) CountTask() error { return errors.Join(m.countFacts(), m.countCards()) }

func (m *Memory) countCards() error {
	if !m.Advanced() || !m.State().Recall.Done {
		return nil
	}
	e, err := m.experienced()
	if errors.Is(err, opstream.ErrCorrupt) && m.State().Totals.CardsRecalled == 0 {
		return nil // no card was shown; damage is reported when it matters
	}
	if err != nil {
		return fmt.Errorf("count the task's cards: %w", err)
	}
	if err := m.cards.Count(e.Events(m.ID, "")...); err != nil {
		return err
	}
	return m.retireContradicted(e)
}

// TestsSince returns the last test run that ended after an operation; nil if there was none, or it cannot be read.
func (m *Memory) TestsSince(seq uint64) *experience.Check {
	if e, err := m.experienced(); err == nil && e.Check != nil && e.Check.Op > seq {
		return e.Check
	}
	return nil
}

// experienced returns what the task's operations show about cards so far.
func (m *Memory) experienced() (*experience.Log, error) {
	m.seenMu.Lock()
	defer m.seenMu.Unlock()
	err := taskdir.EachDecoded(m.Journal.Log().Since(m.experience.Last), func(o op.Op) error {
		m.experience.Add(&o)
		m.facts.Add(&o)
		return nil
	})
	e := m.experience // a copy: another call may add to it
	return &e, err
}
