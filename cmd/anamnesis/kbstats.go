//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/show"
	knowledgebase "anamnesis/knowledge_base"
)

func (a *app) kbStatsCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count cards by state, and their effect on the tasks that saw them",
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			st := show.CountCards(store)
			return a.show(st, func() { a.out().Stats(st) })
		}),
	}
	return a.jsonFlag(cmd, "one JSON object")
}
