package knowledgebase

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/usage"
)

// usageFile is the log of the counters, beside the cards and not in their
// history.
const usageFile = "usage.jsonl"

// What a card's state adds to its score, and the bound of all such additions.
const (
	reviewedLean = 0.05
	expiredLean  = -0.10
	maxLean      = 0.15
)

func (s *Store) usagePath() string {
	if s.opts.usage != "" {
		return s.opts.usage
	}
	return filepath.Join(s.dir, usageFile)
}

// Count adds events to the counters; a zero time is now. Events that would
// change nothing are left out. What others counted meanwhile is seen after
// [Store.Rebuild].
func (s *Store) Count(events ...usage.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	return s.count(events)
}

func (s *Store) count(events []usage.Event) error {
	events = slices.DeleteFunc(slices.Clone(events), s.usage.Knows)
	for i := range events {
		if events[i].At.IsZero() {
			events[i].At = s.opts.Now().UTC()
		}
	}
	if err := usage.Append(s.usagePath(), events); err != nil {
		return err
	}
	for _, e := range events {
		s.usage.Add(e)
	}
	return nil
}

// Counts returns a card's counters.
func (s *Store) Counts(id string) usage.Counts {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return usage.Counts{}
	}
	return s.usage.Counts(id)
}

// countRediscovered counts the cards whose lesson was learned again. A pass or an import
// that is repeated counts once, by its task and the operation of its jump or failure.
func (s *Store) countRediscovered(cards []*card.Card, out []Stored) error {
	var events []usage.Event
	for i, st := range out {
		if st.Rediscovered {
			at := cards[i].Provenance.JumpOp
			if r := cards[i].Provenance.Ranges; at == 0 && len(r) > 0 {
				at = r[0].First
			}
			task := cmp.Or(cards[i].Provenance.Task, cards[i].SourceTask)
			events = append(events, usage.Event{Card: st.ID, What: usage.Rediscovered, Task: task, Op: at})
		}
	}
	if err := s.count(events); err != nil {
		return fmt.Errorf("the cards are stored: %w", err)
	}
	return nil
}

// prior returns the factor of a card's score, within ±15%: by its state, its date, and the outcome in
// the tasks that were shown it.
func (s *Store) prior(c *card.Card, now time.Time) float64 {
	lean := s.usage.Counts(c.ID).Lean()
	if c.State == card.Reviewed {
		lean += reviewedLean
	}
	if c.Expired(now) {
		lean += expiredLean
	}
	return 1 + min(max(lean, -maxLean), maxLean)
}
