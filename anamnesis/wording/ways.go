package wording

import "anamnesis/knowledge_base/card"

// Ways finds the card that already teaches another way to call: of many tasks that start a
// program that is missing, say, one card is enough. It holds cards by repository and way
// (repair.Pair.Way).
type Ways map[string]*card.Card

// WaysOf returns the ways that cards teach.
func WaysOf(cards []*card.Card) Ways {
	w := make(Ways)
	for _, c := range cards {
		w.Add(c)
	}
	return w
}

// Add adds a card, unless one that was added before teaches the same and is reviewed or c is not.
func (w Ways) Add(c *card.Card) {
	way := wayOf(c)
	if old := w[way]; way != "" && (old == nil || old.State != card.Reviewed && c.State == card.Reviewed) {
		w[way] = c
	}
}

// First returns the card that teaches what c teaches: c, if no card was added that does.
func (w Ways) First(c *card.Card) *card.Card {
	if old := w[wayOf(c)]; old != nil {
		return old
	}
	return c
}

// wayOf returns the way that a card about a repository teaches, or "". A card that completes
// another says more than its way.
func wayOf(c *card.Card) string {
	p, ok := PairOf(c)
	if !ok || p.Repo == "" || len(c.Supersedes) > 0 {
		return ""
	}
	way := p.Way()
	if way == "" {
		return ""
	}
	return p.Repo + "\n" + way
}
