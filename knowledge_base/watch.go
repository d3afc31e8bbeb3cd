package knowledgebase

import (
	"context"
	"fmt"
	"sync"
)

// watch is what the folder held when it was looked at last.
type watch struct {
	mu   sync.Mutex
	mark uint64
}

// refreshWatched reads a watched folder again if anything happened in it. No lock is held.
func (s *Store) refreshWatched() error {
	if !s.opts.Watch {
		return nil
	}
	s.watch.mu.Lock()
	defer s.watch.mu.Unlock()
	// The mark is taken before the files are read, so that a change meanwhile shows at the next look.
	mark := s.folder.Mark()
	if mark != s.watch.mark {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.closed {
			return ErrClosed
		}
		if err := s.load(context.Background(), s.byPath()); err != nil {
			return fmt.Errorf("look at the changes in %s: %w", s.dir, err)
		}
	}
	s.watch.mark = mark
	return nil
}
