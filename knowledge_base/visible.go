package knowledgebase

import (
	"cmp"
	"slices"

	"anamnesis/knowledge_base/card"
)

// Visible returns the cards that q's task may be shown, oldest first. Of cards with one
// id the nearest layer's is returned.
func (l Layers) Visible(q Query) []*card.Card {
	var out []*card.Card
	seen := make(map[string]bool)
	for _, s := range l {
		for _, c := range s.visible(q) {
			if !seen[c.ID] {
				seen[c.ID], out = true, append(out, c)
			}
		}
	}
	slices.SortFunc(out, func(a, b *card.Card) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID))
	})
	return out
}

func (s *Store) visible(q Query) (out []*card.Card) {
	_ = s.freshen() // what cannot be looked at is as it was; a search says why
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, st := range s.cards {
		if shownTo(&st.Head, q) {
			out = append(out, st.Card())
		}
	}
	return out
}
