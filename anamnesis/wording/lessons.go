package wording

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"anamnesis/anamnesis/repair"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// Lessons finds the card that already teaches what another does: of many tasks that repair the
// same failure the same way, one card is enough. The zero value is empty.
type Lessons struct {
	by map[string][]taught // by repository and kind of failure
}

type taught struct {
	repair.Lesson
	card *card.Card
}

// LessonsOf returns the lessons of cards.
func LessonsOf(cards []*card.Card) *Lessons {
	l := new(Lessons)
	for _, c := range cards {
		l.Add(c)
	}
	return l
}

// Add adds a card. If one that was added before teaches the same, the better of them counts.
func (l *Lessons) Add(c *card.Card) {
	lesson, ok := lessonOf(c)
	if !ok {
		return
	}
	of, i := l.find(&lesson)
	switch {
	case i < 0:
		if l.by == nil {
			l.by = make(map[string][]taught)
		}
		l.by[lesson.Trouble()] = append(of, taught{lesson, c})
	case better(&taught{lesson, c}, &of[i]):
		of[i] = taught{lesson, c}
	}
}

// Put writes cards, and adds those it wrote. Of a lesson that is known, the known card counts, with the
// shorter text. A card that a user has reviewed since it was last written stays as it is. ids names the
// cards that hold the lessons, created counts the new ones among them, and notWritten says which
// cards could not be written, and why.
func (l *Lessons) Put(ctx context.Context, store *knowledgebase.Store, cards []*card.Card) (ids, notWritten []string, created int) {
	ids = []string{}
	for _, c := range cards {
		known, instead := l.Known(c)
		stored, err := store.Apply(ctx, knowledgebase.Change{Cards: []*card.Card{c}, Known: map[string]string{c.ID: known.ID}, Instead: instead})
		held := *c
		switch {
		case errors.As(err, new(*knowledgebase.ConflictError)):
		case err != nil:
			notWritten = append(notWritten, fmt.Sprintf("%s: %v", c.ID, err))
			continue
		default:
			held.ID = stored[0].ID
			l.Add(&held)
			if stored[0].Created {
				created++
			}
		}
		if !slices.Contains(ids, held.ID) {
			ids = append(ids, held.ID)
		}
	}
	return ids, notWritten, created
}

// Known returns the card that teaches what c teaches, and reports whether c says it better; c
// and false if no card was added that does.
func (l *Lessons) Known(c *card.Card) (known *card.Card, instead bool) {
	if lesson, ok := lessonOf(c); ok {
		if of, i := l.find(&lesson); i >= 0 {
			return of[i].card, better(&taught{lesson, c}, &of[i])
		}
	}
	return c, false
}

func (l *Lessons) find(lesson *repair.Lesson) ([]taught, int) {
	of := l.by[lesson.Trouble()]
	return of, slices.IndexFunc(of, func(t taught) bool { return t.Same(lesson) })
}

// better reports whether a says what b does better: it is reviewed and b is not, or neither is,
// and its lesson is ([repair.Lesson.Better]).
func better(a, b *taught) bool {
	if b.card.State == card.Reviewed {
		return false
	}
	return a.card.State == card.Reviewed || a.Better(&b.Lesson)
}

// lessonOf returns what a card about a repository teaches; false for other cards and for a card
// that completes another, which says more.
func lessonOf(c *card.Card) (repair.Lesson, bool) {
	if c.Scope.Repo == "" || len(c.Supersedes) > 0 {
		return repair.Lesson{}, false
	}
	p, ok := PairOf(c)
	if !ok {
		return repair.Lesson{}, false
	}
	return p.Lesson(), true
}
