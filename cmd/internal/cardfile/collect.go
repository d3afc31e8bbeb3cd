//go:build unix

package cardfile

import (
	"slices"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// Collect returns the cards of some stores, each id once and without secrets. Those of the
// folder own are about the project repo.
func Collect(stores []*knowledgebase.Store, own, repo string) ([]*card.Card, error) {
	var out []*card.Card
	for _, s := range stores {
		for _, e := range s.List() {
			c, err := s.Get(e.ID)
			if err != nil {
				return nil, err
			}
			if c, err = s.Redacted(c); err != nil {
				return nil, err
			}
			if s.Dir() == own {
				c = c.Clone()
				c.Scope.Repo = repo
			}
			if !slices.ContainsFunc(out, func(o *card.Card) bool { return o.ID == c.ID }) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}
