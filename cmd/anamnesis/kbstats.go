//go:build unix

package main

import (
	"cmp"
	"fmt"
	"slices"

	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/usage"

	"github.com/spf13/cobra"
)

// mostTold is how many cards 'kb stats' names.
const mostTold = 10

// kbStats are the figures of a folder of cards.
type kbStats struct {
	States  map[card.State]int `json:"states"`
	Tainted int                `json:"tainted_drafts"`
	Expired int                `json:"expired"`
	Broken  int                `json:"broken"`
	Totals  usage.Counts       `json:"totals"`
	Effect  *usage.Effect      `json:"experiment,omitempty"`
	Cards   []kbCounted        `json:"cards"` // those with any count, most shown first
}

type kbCounted struct {
	ID    string     `json:"id"`
	Topic string     `json:"topic"`
	State card.State `json:"state"`
	usage.Counts
}

func (a *app) kbStatsCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count cards by state, and what each did for the tasks that saw it",
		RunE: a.withKB(dir, false, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			st := countCards(store)
			return a.show(st, func() { a.printStats(st) })
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

func countCards(store *knowledgebase.Store) kbStats {
	st := kbStats{States: make(map[card.State]int), Broken: len(store.Broken()), Cards: []kbCounted{}}
	for _, e := range store.List() {
		st.States[e.State]++
		if e.Tainted && e.State == card.Draft {
			st.Tainted++
		}
		if e.Expired {
			st.Expired++
		}
		c := e.Counts
		if c == (usage.Counts{}) {
			continue
		}
		st.Totals.Add(c)
		st.Cards = append(st.Cards, kbCounted{e.ID, e.Topic, e.State, c})
	}
	st.Effect = store.Effect()
	slices.SortFunc(st.Cards, func(a, b kbCounted) int {
		return cmp.Or(cmp.Compare(b.Shown, a.Shown), cmp.Compare(b.Rediscovered, a.Rediscovered), cmp.Compare(a.ID, b.ID))
	})
	return st
}

func (a *app) printStats(st kbStats) {
	total := 0
	for _, n := range st.States {
		total += n
	}
	a.printf("%d cards: %d draft (%d tainted), %d reviewed, %d retired, %d superseded; %d expired, %d files not readable\n",
		total, st.States[card.Draft], st.Tainted, st.States[card.Reviewed], st.States[card.Retired], st.States[card.Superseded], st.Expired, st.Broken)
	a.printf("all: %s\n", figures(st.Totals))
	if e := st.Effect; e != nil {
		a.println(e)
	}
	for _, c := range st.Cards[:min(mostTold, len(st.Cards))] {
		a.printf("%s  %s (%s): %s\n", c.ID, view.Clean(c.Topic), c.State, figures(c.Counts))
	}
	if more := len(st.Cards) - mostTold; more > 0 {
		a.printf("and %d more; --json has them all\n", more)
	}
}

func figures(c usage.Counts) string {
	text := fmt.Sprintf("shown %d, opened %d, followed %d, held %d, contradicted %d; tasks helpful %d, harmful %d; met independently %d, rediscovered %d",
		c.Shown, c.Used, c.Followed, c.Held, c.Contradicted, c.Helpful, c.Harmful, c.Met, c.Rediscovered)
	if c.Refuted {
		text += "; withheld since it was contradicted"
	}
	return text
}
