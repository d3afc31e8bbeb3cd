//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// manualTask is the task of snapshots a user makes with `world save`.
const manualTask = "cli"

// worldGC is the verb that makes stores small.
func (a *app) worldGC(f *worldFlags) *cobra.Command {
	var o worldstate.GCOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Make a store small: one pack, and nothing that no step needs",
		Long: "Make a store small: one pack, and nothing that no step needs.\n\n" +
			"Every snapshot that a step of an existing task, or a user's own save, names is kept, and so is what git names in\n" +
			"the store: refs, HEADs, reflogs, worktrees. What git has packed or left loose there is not touched. With --max-bytes the\n" +
			"snapshots of tasks that were deleted go, the oldest first, until the store fits. Tasks may run meanwhile: they\n" +
			"wait only while the old packs are exchanged for the new one.\n\n" +
			"What is missing or damaged ends it before anything is removed.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.MaxBytes < 0 {
				return usageError("--max-bytes %d: it must not be negative", o.MaxBytes)
			}
			if all && (f.store != "" || f.task != "" || f.dir != "") {
				return usageError("--all is for every store of the program: no --store, --task or --dir beside it")
			}
			stores, err := a.gcStores(f, all)
			if err != nil {
				return err
			}
			return a.gcEach(cmd.Context(), stores, o)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every store of the program")
	cmd.Flags().Int64Var(&o.MaxBytes, "max-bytes", 0, "drop snapshots of deleted tasks until a store is at most so large (0: none)")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "say what would go, and change nothing")
	return cmd
}

// gcStores gives the stores that are meant.
func (a *app) gcStores(f *worldFlags, all bool) ([]string, error) {
	if f.store != "" {
		return []string{f.store}, nil
	}
	h, err := a.home()
	if err != nil {
		return nil, err
	}
	if all {
		return h.Stores()
	}
	if f.task != "" {
		st, err := taskdir.ReadState(h, f.task)
		if err != nil {
			return nil, err
		}
		return []string{st.Opened.Store}, nil
	}
	_, store, err := storeAround(h, f.dir)
	return []string{store}, err
}

// gcEach collects one store after the other; --json prints a list.
func (a *app) gcEach(ctx context.Context, stores []string, o worldstate.GCOptions) error {
	h, err := a.home()
	if err != nil {
		return err
	}
	tasks, err := h.Tasks()
	if err != nil {
		return err
	}
	o.Live = func(task string) bool { return task == manualTask || h.HasTask(task) }
	reports := []worldstate.GCReport{}
	over := false
	for _, store := range stores {
		o.Keep = namedSteps(h, tasks, store)
		r, err := worldstate.GC(ctx, store, &o)
		if err != nil {
			return err
		}
		over = over || r.Over
		reports = append(reports, r)
		if !a.json {
			a.printGC(r)
		}
	}
	if a.json {
		if err := a.printJSON(reports); err != nil {
			return err
		}
	}
	if over {
		return &exitError{exitLimit, fmt.Errorf("what existing tasks need is more than --max-bytes %d; delete tasks, or raise it", o.MaxBytes)}
	}
	return nil
}

// namedSteps are the snapshots that tasks' streams name. A stream that cannot be
// read names nothing beyond its refs, which keep its steps as well.
func namedSteps(h taskdir.Home, tasks []string, store string) []worldstate.ID {
	var ids []worldstate.ID
	for _, task := range tasks {
		st, err := taskdir.ReadState(h, task)
		if err != nil || st.Opened.Store != store {
			continue
		}
		named, _, _ := workspace.Commits(h, task, st, nil) // those that can be read
		ids = append(ids, slices.DeleteFunc(named, func(id worldstate.ID) bool { return id == "" })...)
	}
	return ids
}

func (a *app) printGC(r worldstate.GCReport) {
	verb := "is now"
	if r.DryRun {
		verb = "would be at most"
	}
	a.printf("%s: %d snapshots, %d objects; it was %d bytes and %s %d\n", r.Store, r.Snapshots, r.Objects, r.BytesBefore, verb, r.BytesAfter)
	for _, task := range r.Dropped {
		a.printf("  dropped: deleted task %s\n", task)
	}
	for _, task := range r.Kept {
		a.printf("  kept: deleted task %s\n", task)
	}
}
