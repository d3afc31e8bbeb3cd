//go:build unix

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

// worldGC is the verb that reduces stores.
func (a *app) worldGC(f *session.Place) *cobra.Command {
	var o worldstate.GCOptions
	var all bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Pack a store, and remove what no step needs",
		Long: `Pack a store, and remove what no step needs.

Snapshots named by a step of an existing task, by your own save or by a branch of yours are kept.
Packs and loose objects of git's are not touched. A store with worktrees, reflogs, an index or a
detached HEAD, or with a tag or branch whose objects are in no pack, is refused with the remedy.
--max-bytes removes snapshots of deleted tasks, the oldest first, until the store fits. Tasks may
run at the same time: they wait only while the packs are exchanged.

If an object is missing or damaged, the command fails before anything is removed.`,
		RunE: a.withService(func(cmd *cobra.Command, _ []string, svc *session.Service) error {
			if o.MaxBytes < 0 {
				return exit.Usagef("--max-bytes %d: it must not be negative", o.MaxBytes)
			}
			if all && (f.Store != "" || f.Task != "" || f.Dir != "") {
				return exit.Usagef("--all is for every store of the program: no --store, --task or --dir beside it")
			}
			reports, over := []worldstate.GCReport{}, false
			done := a.line().Working("packing")
			err := svc.CollectGarbage(cmd.Context(), *f, all, o, func(r worldstate.GCReport) {
				reports, over = append(reports, r), over || r.Over
				if done(); !a.json {
					a.out().Collected(r)
				}
				done = a.line().Working("packing")
			})
			done()
			if err == nil && a.json {
				err = a.printJSON(reports)
			}
			// One store that stays too large must not keep the others from being collected.
			if err == nil && over {
				err = exit.With(exit.Limit, fmt.Errorf(
					"what existing tasks need is more than --max-bytes %d; delete tasks, or raise it", o.MaxBytes))
			}
			return err
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every store of the program")
	cmd.Flags().Int64Var(&o.MaxBytes, "max-bytes", 0,
		"remove snapshots of deleted tasks until a store is at most this large (0: none)")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print what would be removed, and change nothing")
	return cmd
}
