//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/names"
	knowledgebase "anamnesis/knowledge_base"
)

func (a *app) kbRepairsCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repairs [ID]…",
		Short: "List what tasks repaired and no card says yet, newest first",
		Long: `List the failed commands that tasks of this machine repaired and that are not cards yet, newest
first; with IDs, print these repairs as cards. A task that meets the failure is shown the repair,
which becomes a card then. 'kb approve' makes it a reviewed card now; after 'kb reject' no task is
shown it. A tainted one was drawn from text that may come from a network: no task is shown it
before you approve it.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, ids []string, store *knowledgebase.Store) error {
			svc, err := a.service()
			if err != nil {
				return err
			}
			repairs, err := names.Repairs(svc.Home, store, ids)
			if err != nil {
				return err
			}
			return a.show(map[string]any{"repairs": repairs}, func() { a.out().Repairs(repairs, len(ids) > 0) })
		}),
	}
	return a.jsonFlag(cmd, "one JSON object")
}
