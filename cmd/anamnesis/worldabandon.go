//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

func (a *app) worldAbandon(f *session.Place) *cobra.Command {
	return &cobra.Command{
		Use:   "abandon",
		Short: "Abandon an interrupted restore and leave the files as they are",
		Long: `Abandon an interrupted restore that can be neither finished nor rolled back.

No file is written or deleted: some are as in the snapshot, the others as before. Both versions
are in the store, and saves, restores and jumps work again. With --task, a jump of the task that
had begun ends at its step, and the next request shows the model which files differ from it.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.IsTask(a.home) {
				svc, err := a.service()
				if err != nil {
					return err
				}
				found, warnings, err := svc.AbandonRestore(cmd.Context(), f.Task)
				if a.warn(warnings...); err != nil {
					return err
				}
				return a.printAbandoned(found)
			}
			return a.withWorld(cmd.Context(), f, session.Stored, func(w *worldstate.World) error {
				r, err := w.Abandon(cmd.Context())
				if err != nil {
					return err
				}
				return a.printAbandoned(r != nil)
			})
		},
	}
}

func (a *app) printAbandoned(found bool) error {
	return a.show(map[string]bool{"abandoned": found}, func() {
		text := "no restore was interrupted"
		if found {
			text = "the interrupted restore was abandoned; the files stay as they are"
		}
		a.println(text)
	})
}
