//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// worldCommand is the verb family around snapshots of a directory.
func (a *app) worldCommand() *cobra.Command {
	f := &session.Place{}
	cmd := &cobra.Command{
		Use:   "world",
		Short: "Save a directory as snapshots and restore it",
		Long: `Save a directory as snapshots and restore it.

A snapshot is named by its step, by TASK@STEP, by its id or at least seven digits of it, or by
@, the last known state of the directory.

In JSON, a name that is not UTF-8 has its exact bytes beside it, in base64: "path_bytes" beside
"path". For a list of names that is an object from the position in the list, counted from 0, to
the bytes.`,
	}
	cmd.PersistentFlags().StringVar(&f.Dir, "dir", "",
		"the directory (default: the current one, the nearest parent in which a task ran, or the task's)")
	cmd.PersistentFlags().StringVar(&f.Store, "store", "",
		"the store: a bare git repository, created by the first save (default: the task's, or the directory's)")
	cmd.PersistentFlags().StringVar(&f.Task, "task", "", "task to which step numbers refer")
	cmd.PersistentFlags().BoolVar(&a.json, "json", false, "print one JSON object")
	cmd.AddCommand(a.worldSave(f), a.worldPlan(f), a.worldRestore(f), a.worldLog(f), a.worldDiff(f), a.worldShow(f),
		a.worldFork(f), a.worldVerify(f), a.worldAbandon(f), a.worldGC(f))
	return cmd
}

// withWorld opens the world and, if the verb changes or examines the directory, first finishes
// an interrupted restore.
func (a *app) withWorld(ctx context.Context, f *session.Place, use session.Use,
	run func(*worldstate.World) error) error {
	o := worldstate.Options{Home: a.getenv("HOME"), Hook: a.store.World.Hook, Progress: a.line().Scan}
	var err error
	if o.FileLimitBytes, o.SizeLimitBytes, err = taskdir.SnapshotLimits(a.getenv); err != nil {
		return exit.Usagef("%v", err)
	}
	w, err := f.Open(a.home, use, o)
	if err != nil {
		return err
	}
	defer w.Close()
	if h, err := a.home(); err == nil {
		a.sayUnexamined(h)
	}
	if use == session.Live {
		r, err := w.Recover(ctx)
		if err != nil {
			return err
		}
		a.out().Recovered(r)
	}
	return run(w)
}

// resolve returns the snapshots named on a command line.
func (a *app) resolve(ctx context.Context, f *session.Place, w *worldstate.World,
	list []string) ([]worldstate.ID, error) {
	return names.Snapshots(ctx, a.home, w, f.Task, list)
}

func (a *app) worldSave(f *session.Place) *cobra.Command {
	var message string
	cmd := &cobra.Command{
		Use:   "save",
		Short: "Save a snapshot of the directory",
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.Begin = true
			return a.withWorld(cmd.Context(), f, session.Live, func(w *worldstate.World) error {
				snap, err := w.SaveNext(cmd.Context(), message)
				if err != nil {
					return err
				}
				a.out().SaveNotes(snap)
				return a.show(snap, func() { a.out().Saved(snap) })
			})
		},
	}
	cmd.Flags().StringVarP(&message, "message", "m", "", "description of the snapshot")
	return cmd
}

// planFlags are what plan and restore share.
type planFlags struct {
	overwrite, otherWorld bool
}

func (p *planFlags) register(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&p.overwrite, "overwrite", false,
		"also revert what was edited since the last snapshot (it is saved first)")
	cmd.Flags().BoolVar(&p.otherWorld, "other-world", false, "accept a snapshot that was taken of another directory")
}

func (p *planFlags) options(paths []string) worldstate.PlanOptions {
	return worldstate.PlanOptions{Paths: paths,
		OverwriteEdits: p.overwrite, OtherWorld: p.otherWorld}
}

func (a *app) worldPlan(f *session.Place) *cobra.Command {
	flags := &planFlags{}
	cmd := &cobra.Command{
		Use:   "plan ID [PATH…]",
		Short: "Show what a restore would do, without doing it",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withWorld(cmd.Context(), f, session.Live, func(w *worldstate.World) error {
				ids, err := a.resolve(cmd.Context(), f, w, args[:1])
				if err != nil {
					return err
				}
				plan, err := a.plannedRestore(cmd.Context(), f, w, ids[0], args[0], flags.options(args[1:]))
				if err != nil {
					return err
				}
				a.out().Lost(plan.BaseLost, allEdited)
				return a.show(plan, func() { a.out().Plan(plan) })
			})
		},
	}
	flags.register(cmd)
	return cmd
}

// plannedRestore plans like 'world restore' with the same flags.
func (a *app) plannedRestore(ctx context.Context, f *session.Place, w *worldstate.World, id worldstate.ID, name string,
	o worldstate.PlanOptions) (worldstate.Plan, error) {
	if !f.IsTask(a.home) {
		return w.Plan(ctx, id, &o)
	}
	h, err := a.home()
	if err != nil {
		return worldstate.Plan{}, err
	}
	return inspect.PlanRestore(ctx, h, f.Task, w, id, name, o)
}

func (a *app) worldRestore(f *session.Place) *cobra.Command {
	flags := &planFlags{}
	var hash string
	cmd := &cobra.Command{
		Use:   "restore ID [PATH…]",
		Short: "Save the directory, then restore a snapshot",
		Long: `Save the directory, then restore a snapshot under the same lock. With --task, the restore is
recorded in the task, which stays at its step, and the next request informs the model.
Edits since the last snapshot are kept unless --overwrite is given. Ignored files are never
changed. In a directory without any file, as after rm -rf, nothing counts as edited and the
whole snapshot is restored. PATHs are relative to the directory and restrict the restore to them
and everything below.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := worldstate.RestoreOptions{PlanOptions: flags.options(args[1:]), PlanHash: hash}
			if f.IsTask(a.home) { // it is recorded there
				svc, err := a.service()
				if err != nil {
					return err
				}
				done := a.line().Working("restoring")
				res, warnings, err := beside.Restore(cmd.Context(), svc, f.Task, args[0], o)
				done()
				if a.warn(warnings...); err != nil {
					return err
				}
				return a.printRestored(res)
			}
			return a.withWorld(cmd.Context(), f, session.Live, func(w *worldstate.World) error {
				if h, err := a.home(); err == nil {
					if err := h.CheckFree(w.Dir()); err != nil {
						return err
					}
				}
				ids, err := a.resolve(cmd.Context(), f, w, args[:1])
				if err != nil {
					return err
				}
				done := a.line().Working("restoring")
				res, err := w.RestoreTo(cmd.Context(), ids[0], o)
				if err == nil {
					err = w.Sync()
				}
				done()
				if err != nil {
					return err
				}
				return a.printRestored(res)
			})
		},
	}
	flags.register(cmd)
	cmd.Flags().StringVar(&hash, "plan", "", "refuse unless the plan still has this hash")
	return cmd
}

// allEdited is the consequence of a lost base.
const allEdited = "every path that differs from the target counts as edited and is kept; --overwrite restores it"

func (a *app) printRestored(res worldstate.Result) error {
	a.out().Lost(res.BaseLost, allEdited)
	return a.show(res, func() { a.out().Restored(res) })
}

func (a *app) worldVerify(f *session.Place) *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read and check every object of the store",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withWorld(cmd.Context(), f, session.Stored, func(w *worldstate.World) error {
				done := a.line().Working("verifying the store")
				r, err := w.Verify(cmd.Context())
				done()
				if err != nil {
					return err
				}
				if err := a.show(r, func() { a.out().Verified(r) }); err != nil {
					return err
				}
				if !r.OK {
					return exit.With(exit.Corrupt, fmt.Errorf("store %s: %d objects are missing or damaged",
						w.Store(), len(r.Problems)))
				}
				return nil
			})
		},
	}
}
