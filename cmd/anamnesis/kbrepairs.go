//go:build unix

package main

import (
	"time"

	"anamnesis/cmd/internal/names"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"

	"github.com/spf13/cobra"
)

func (a *app) kbRepairsCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repairs [ID]…",
		Short: "List what tasks repaired and no card says yet, newest first",
		Long: `List the failed commands that tasks of this machine repaired and that are not cards yet, newest
first; with IDs, print these repairs as cards. A task that meets the failure is shown the repair,
which becomes a card then. 'kb approve' makes it a reviewed card now; after 'kb reject' no task is
shown it.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.withKB(dir, false, func(cmd *cobra.Command, ids []string, store *knowledgebase.Store) error {
			svc, err := a.service()
			if err != nil {
				return err
			}
			repairs, err := names.Repairs(svc.Home, store, ids)
			if err != nil {
				return err
			}
			return a.show(map[string]any{"repairs": repairs}, func() {
				for _, c := range repairs {
					if len(ids) > 0 {
						a.printf("%s\n", view.Clean(string(c.Markdown())))
						continue
					}
					a.println(view.Fit(a.stdout, c.Created.Format(time.DateOnly)+"  "+c.ID+"  "+view.Clean(c.Topic)))
				}
			})
		}),
	}
	return a.jsonFlag(cmd, "one JSON object")
}
