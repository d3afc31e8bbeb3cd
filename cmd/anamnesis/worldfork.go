//go:build unix

package main

import (
	"github.com/spf13/cobra"

	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

func (a *app) worldFork(f *session.Place) *cobra.Command {
	return &cobra.Command{
		Use:   "fork ID DIR",
		Short: "Create a new directory from a snapshot",
		Long: `Create the directory DIR from a snapshot, with its modes, links and empty directories. DIR must
not exist, nor lie inside the world or the store. It is created completely or not at all.
Ignored files and nested .git directories are in no snapshot, so they are not in DIR either.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withWorld(cmd.Context(), f, session.Stored, func(w *worldstate.World) error {
				ids, err := a.resolve(cmd.Context(), f, w, args[:1])
				if err != nil {
					return err
				}
				done := a.line().Working("writing files")
				made, err := w.Fork(cmd.Context(), ids[0], args[1])
				done()
				if err != nil {
					return err
				}
				for _, s := range made.Missing {
					a.notef("not in the snapshot: %q: %s", s.Path, s.Reason)
				}
				return a.show(made, func() {
					a.printf("%s holds %d files of snapshot %.12s\n", made.Dir,
						made.Files, string(made.ID))
				})
			})
		},
	}
}
