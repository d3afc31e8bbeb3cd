package knowledgebase

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/opstream/durable"
)

// refreshWatched takes in what others changed in a watched folder. No lock is held.
func (s *Store) refreshWatched() error {
	if s.watch == nil {
		return nil
	}
	names, all := s.watch.Changed()
	if !all && len(names) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if !all && s.isOwnChange(names) {
		return nil
	}
	if err := s.refresh(); err != nil {
		s.watch.Record("")
		return fmt.Errorf("look at the changes in %s: %w", s.dir, err)
	}
	return nil
}

// isOwnChange reports whether all that happened at some paths was this process writing
// cards, which are in memory as they are there. The write lock is held.
func (s *Store) isOwnChange(names map[string]bool) bool {
	if filepath.Dir(s.opts.reviews) != filepath.Clean(s.dir) {
		return false // what counts as reviewed is read anew with the cards
	}
	var paths []string
	cards := make(map[string]*folder.File)
	for path := range names {
		if strings.HasPrefix(filepath.Base(path), durable.TempPrefix) {
			continue
		}
		st := s.cardAt(path)
		if st == nil {
			return false
		}
		paths, cards[path] = append(paths, path), st
	}
	return s.unchanged(paths, cards)
}

// cardAt returns the card whose file is at a path and has the name that was made
// for it, with its id at the end; nil where there is none.
func (s *Store) cardAt(path string) *folder.File {
	for rest := strings.TrimSuffix(filepath.Base(path), ".md"); ; {
		var dash bool
		if _, rest, dash = strings.Cut(rest, "-"); !dash {
			return nil
		}
		if st := s.cards[rest]; st != nil && st.Path() == path {
			return st
		}
	}
}

// refresh reads the files again and updates the index for those that changed. The
// write lock is held.
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
