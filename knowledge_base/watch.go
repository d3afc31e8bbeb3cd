package knowledgebase

import (
	"context"
	"fmt"
)

// refreshWatched reads a watched folder again if anything happened in it. No lock is held.
func (s *Store) refreshWatched() error {
	if s.watch == nil {
		return nil
	}
	if !s.watch.Changed() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if err := s.refresh(); err != nil {
		s.watch.Record()
		return fmt.Errorf("look at the changes in %s: %w", s.dir, err)
	}
	return nil
}

// refresh reads the files again and updates the index for those that changed. The write lock is held.
func (s *Store) refresh() error {
	now, err := s.scan(context.Background(), s.byPath())
	if err != nil {
		return err
	}
	for id := range s.cards {
		if now.cards[id] == nil {
			s.index.Remove(id)
		}
	}
	for id, st := range now.cards {
		if s.cards[id] == nil || s.cards[id].Sum != st.Sum {
			s.index.Enter(st)
		}
	}
	s.contents = now
	return nil
}
