package review

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/retrieval"
)

const (
	// maxAlike is how many waiting cards are compared with one another: 400 take about 0.1 s, for each page.
	maxAlike = 400
	// likeness is the bound of a group, strict because cards of a group may be rejected unread: of 60 recorded repairs
	// it made 11 groups, each of one lesson, and 0.25 mixed lessons in 4 of 15.
	likeness = 0.35
)

// Group is cards that a user may decide about together: they have one state.
type Group struct {
	Alike bool   // they say nearly the same; otherwise they come from one task
	Task  string // that they come from; "" for cards that nothing joins
	Cards []*card.Card
}

// By says what cards are grouped by.
type By string

// The ways to group. By likeness, cards that are like no other are grouped by task.
const (
	ByLikeness By = "likeness"
	ByTask     By = "task"
	ByNothing  By = "nothing"
)

// Groups returns the cards in groups, in the order of their first cards. The cards that are in none come last.
func Groups(cards []*card.Card, by By) []Group {
	alike := make(map[string]string) // the group of each card
	if by == ByLikeness {
		var lessons []retrieval.Lesson
		for _, c := range cards[:min(len(cards), maxAlike)] {
			lessons = append(lessons, lessonOf(c))
		}
		for i, g := range retrieval.FindGroups(lessons, likeness) {
			for _, id := range g.IDs {
				alike[id] = fmt.Sprint(i)
			}
		}
	}
	type key struct {
		state       card.State
		alike, task string
	}
	of := func(c *card.Card) key {
		if a := alike[c.ID]; a != "" || by == ByNothing {
			return key{c.State, a, ""}
		}
		return key{c.State, "", c.SourceTask}
	}
	size := make(map[key]int)
	for _, c := range cards {
		size[of(c)]++
	}
	var out, last []Group
	at := make(map[key]int) // in out
	for _, c := range cards {
		k := of(c)
		if k == (key{state: c.State}) || size[k] < 2 {
			i := slices.IndexFunc(last, func(g Group) bool { return g.Cards[0].State == c.State })
			if i < 0 {
				i, last = len(last), append(last, Group{})
			}
			last[i].Cards = append(last[i].Cards, c)
			continue
		}
		if _, found := at[k]; !found {
			at[k], out = len(out), append(out, Group{Alike: k.alike != "", Task: k.task})
		}
		out[at[k]].Cards = append(out[at[k]].Cards, c)
	}
	return append(out, last...)
}

// lessonOf returns a card's two parts, to be compared. A card that lacks one is compared by all it says.
func lessonOf(c *card.Card) retrieval.Lesson {
	trouble, remedy := strings.Join(c.Issue, "\n"), strings.Join(c.Solution, "\n")
	all := strings.Join(slices.Concat(c.Issue, c.Solution, c.Constraint), "\n")
	return retrieval.Lesson{ID: c.ID, Trouble: c.Topic + "\n" + cmp.Or(trouble, all), Remedy: cmp.Or(remedy, all)}
}

// Filter selects waiting cards. The zero value selects all.
type Filter struct {
	Words string // each of them is in the card's text
	Repo  string
}

// Matches reports whether the filter selects a card that waits.
func (f Filter) Matches(c *card.Card) bool {
	if f.Repo != "" && f.Repo != c.Scope.Repo {
		return false
	}
	text := strings.ToLower(string(c.Source()))
	lacks := func(word string) bool { return !strings.Contains(text, word) }
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(f.Words)), lacks)
}
