package session

import (
	"context"

	"anamnesis/orchestrator/search"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// Search finds what all tasks of the home said and did. If here is set, those of the repository of a directory alone.
// progress receives how many of the changed tasks were read; it may be nil.
func (s *Service) Search(ctx context.Context, q search.Query, here string, progress func(read, of int)) (*search.Found, error) {
	if here != "" {
		dir, err := taskdir.WorldDir(here)
		if err != nil {
			return nil, err
		}
		q.Here, _, _ = worldstate.Identity(dir)
		q.Repo = worldstate.RepositoryName(dir)
	}
	if progress == nil {
		progress = func(int, int) {}
	}
	return search.Find(ctx, s.Home, q, progress)
}
