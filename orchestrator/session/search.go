package session

import (
	"context"

	"anamnesis/orchestrator/search"
)

// Search finds what all tasks of the home said and did. progress receives how many of the changed tasks were read.
func (s *Service) Search(ctx context.Context, q search.Query, progress func(read, of int)) (*search.Found, error) {
	return search.Find(ctx, s.Home, q, progress)
}
