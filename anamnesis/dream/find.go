package dream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/review"
)

// Group is cards that probably say one thing.
type Group struct {
	Cards    []*card.Card // sorted by id
	Likeness float64      // 0 to 1; see [retrieval.FindGroups]
}

// IDs names the group's cards.
func (g Group) IDs() []string {
	var out []string
	for _, c := range g.Cards {
		out = append(out, c.ID)
	}
	return out
}

// Found is the result of Find.
type Found struct {
	Groups []Group // the most alike first
	Known  int     // groups that a card was proposed for before, whatever became of it
}

// Find looks for groups among the cards that are recalled; cards that were drawn
// from others are no instances, and cards of one task only are no group. Whether the cards of a
// group say one thing is for a model to judge.
func Find(ctx context.Context, store *knowledgebase.Store) (*Found, error) {
	cards := make(map[string]*card.Card)
	var lessons []retrieval.Lesson
	var drawn []*card.Card
	for _, e := range store.List() {
		c, err := store.Get(e.ID)
		if errors.Is(err, knowledgebase.ErrNotFound) {
			continue // gone meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("dream: %w", err)
		}
		switch {
		case len(c.Generalizes) > 0:
			drawn = append(drawn, c)
		case c.State == card.Draft || c.State == card.Reviewed:
			cards[c.ID] = c
			lessons = append(lessons, review.LessonOf(c))
		}
	}
	groups, err := retrieval.FindGroups(ctx, lessons, retrieval.WideLikeness)
	if err != nil {
		return nil, fmt.Errorf("dream: %w", err)
	}
	out := &Found{}
	for _, g := range groups {
		whole := Group{Likeness: g.Likeness}
		for _, id := range g.IDs {
			whole.Cards = append(whole.Cards, cards[id])
		}
		switch {
		case oneTask(whole.Cards):
		case proposedBefore(g.IDs, drawn):
			out.Known++
		default:
			out.Groups = append(out.Groups, whole)
		}
	}
	return out, nil
}

// proposedBefore reports whether a card was drawn from all of these before. It counts
// in every state: what a user turned down is not proposed again.
func proposedBefore(ids []string, drawn []*card.Card) bool {
	return slices.ContainsFunc(drawn, func(c *card.Card) bool {
		return !slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(c.Generalizes, id) })
	})
}

// oneTask reports whether one task learned all of it. Cards that people wrote
// have no task.
func oneTask(cards []*card.Card) bool {
	task := cards[0].Provenance.Task
	return task != "" && !slices.ContainsFunc(cards, func(c *card.Card) bool { return c.Provenance.Task != task })
}
