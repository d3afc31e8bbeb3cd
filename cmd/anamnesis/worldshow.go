//go:build unix

package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

func (a *app) worldLog(f *session.Place) *cobra.Command {
	return &cobra.Command{
		Use:   "log",
		Short: "List the snapshots, the newest first",
		Long: `List the snapshots of this directory, and of the task that --task names, the newest first. In a directory
in which tasks ran, those of all of them are listed, by TASK@STEP.
* marks the last known state of the directory. Missing or damaged snapshots are listed with the reason.
'git --git-dir STORE log --graph --all' draws them with their branches.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWorld(cmd.Context(), f, session.Stored, func(w *worldstate.World) error {
				list, err := w.Log(cmd.Context())
				if err != nil {
					return err
				}
				err = a.show(map[string]any{"snapshots": list}, func() { a.out().Snapshots(list) })
				if n := show.Missing(list); err == nil && n > 0 {
					err = exit.With(exit.Corrupt,
						fmt.Errorf("store %s: snapshots are missing or damaged: %d of %d", w.Store(), n, len(list)))
				}
				return err
			})
		},
	}
}

func (a *app) worldDiff(f *session.Place) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use:   "diff A B [PATH…]",
		Short: "Show how two snapshots differ",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withWorld(cmd.Context(), f, session.Stored, func(w *worldstate.World) error {
				ids, err := a.resolve(cmd.Context(), f, w, args[:2])
				if err != nil {
					return err
				}
				changes, err := session.Changes(cmd.Context(), w, ids[0], ids[1], args[2:])
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"changes": changes})
				}
				return a.printChanges(cmd.Context(), w, changes, patch)
			})
		},
	}
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "print a unified diff")
	return cmd
}

func (a *app) printChanges(ctx context.Context, w *worldstate.World, changes []worldstate.Change, patch bool) error {
	if patch {
		return a.out().Content(func(out io.Writer) error { return w.Patch(ctx, out, changes) })
	}
	a.out().Changes(changes)
	return nil
}

func (a *app) worldShow(f *session.Place) *cobra.Command {
	var patch bool
	cmd := &cobra.Command{
		Use:   "show ID[:PATH]",
		Short: "Show a snapshot, a directory of it, or a file's bytes",
		Long: `Show a snapshot and its changes, a directory of it, or a file's bytes. On a terminal, control
characters are escaped; with --json a file's entry is printed, without the bytes. ID: lists the
snapshot's top directory.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withWorld(cmd.Context(), f, session.Stored, func(w *worldstate.World) error {
				name, path, inside := strings.Cut(args[0], ":")
				ids, err := a.resolve(cmd.Context(), f, w, []string{name})
				if err != nil {
					return err
				}
				if inside {
					return a.showPath(cmd.Context(), w, ids[0], path)
				}
				return a.showSnapshot(cmd.Context(), w, ids[0], patch)
			})
		},
	}
	cmd.Flags().BoolVarP(&patch, "patch", "p", false, "print a unified diff")
	return cmd
}

func (a *app) showSnapshot(ctx context.Context, w *worldstate.World, id worldstate.ID, patch bool) error {
	c, err := w.Describe(ctx, id)
	if err != nil {
		return err
	}
	var parent worldstate.ID
	if len(c.Parents) > 0 {
		parent = c.Parents[0]
	}
	changes, err := session.Changes(ctx, w, parent, id, nil)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]any{"snapshot": c, "changes": changes})
	}
	a.out().Snapshot(c)
	return a.printChanges(ctx, w, changes, patch)
}

func (a *app) showPath(ctx context.Context, w *worldstate.World, id worldstate.ID, path string) error {
	item, err := w.Stat(ctx, id, path)
	switch {
	case err != nil:
		return err
	case item.Type == "dir":
		items, err := w.List(ctx, id, path)
		if err != nil {
			return err
		}
		return a.show(map[string]any{"items": items}, func() { a.out().Items(items) })
	case a.json:
		return a.printJSON(item)
	}
	return a.out().Content(func(out io.Writer) error { return w.Content(ctx, id, path, out) })
}
