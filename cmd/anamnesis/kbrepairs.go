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
		Short: "List commands that failed and later succeeded, newest first",
		Long: `List the commands of this machine's tasks that failed and later succeeded, newest first, without
those that are cards already. With IDs, print each with what was run and changed in between; nothing
shows which of that mattered. No task is shown a repair: 'kb approve' makes it a reviewed card, and
'kb reject' drops it. A tainted repair was drawn from text that may come from a network.`,
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
