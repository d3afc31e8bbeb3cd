package knowledgebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"anamnesis/knowledge_base/history"
)

// History returns the commits that changed a card, newest first; none where the
// folder has no history yet. A card that is gone has one, too. What people
// changed since the last commit is not in it.
func (s *Store) History(ctx context.Context, id string) ([]history.Revision, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	st := s.cards[id]
	pathspec := ":(glob)????-??/[!.]*-" + id + ".md"
	if st != nil {
		rel, err := filepath.Rel(s.dir, st.Path)
		if err != nil {
			return nil, fmt.Errorf("history of card %s: %w", id, err)
		}
		pathspec = ":(literal)" + filepath.ToSlash(rel)
	}
	repo, err := history.Open(s.dir)
	switch {
	case errors.Is(err, fs.ErrNotExist) && st != nil:
		return nil, nil
	case st == nil && strings.ContainsAny(id, `*?[\`):
		err = fs.ErrNotExist // a pattern would find other cards
	}
	var revs []history.Revision
	if err == nil {
		revs, err = repo.Log(ctx, pathspec)
	}
	if err == nil && len(revs) == 0 && st == nil || errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("card %q: %w", id, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("history of card %s: %w", id, err)
	}
	return revs, nil
}
