package session

import (
	"context"

	"anamnesis/orchestrator/search"
	"anamnesis/worldstate"
)

// Search finds what all tasks of the home said and did. If here is set, those of the repository of a directory alone.
// progress receives how many of the changed tasks were read; it may be nil.
func (s *Service) Search(ctx context.Context, q search.Query, here string, progress func(read, of int)) (*search.Found, error) {
	if here != "" {
		q.Here, _, _ = worldstate.Identity(here)
		q.Repo = worldstate.RepositoryName(here)
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	return search.Find(ctx, s.Home, q, progress)
}
