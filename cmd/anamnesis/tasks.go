//go:build unix

package main

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) tasksCommand() *cobra.Command {
	var all, here bool
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "List the tasks",
		Long: `List the tasks, the most recently written last, with their cost if the models' prices are known.
Tasks of subagents and imported sessions are listed only with --all.`,
		RunE: a.withService(func(_ *cobra.Command, _ []string, svc *session.Service) error {
			rows, err := svc.Tasks()
			if err != nil {
				return err
			}
			if !all {
				rows = slices.DeleteFunc(rows, func(r taskdir.Summary) bool { return r.Parent != "" || r.Imported })
			}
			if here {
				project, err := taskdir.ProjectAt(".")
				if err != nil {
					return err
				}
				rows = slices.DeleteFunc(rows,
					func(r taskdir.Summary) bool { return !project.Has(r.Repo, r.Dir, r.WorktreeOf) })
			}
			return a.show(rows, func() { a.out().Tasks(rows) })
		}),
	}
	a.jsonFlag(cmd, "a JSON array")
	cmd.Flags().BoolVar(&here, "here", false, "tasks of this directory's repository alone")
	cmd.Flags().BoolVar(&all, "all", false, "include tasks of subagents and imported sessions")
	return cmd
}

func (a *app) timelineCommand() *cobra.Command {
	cmd := a.onTask(&cobra.Command{
		Use:   "timeline [TASK]",
		Short: "Draw a task's operations and its tree of steps",
	}, 0, 0, func(_ *cobra.Command, svc *session.Service, task string, _ []string) error {
		tl, err := timeline.Read(svc.Home, task)
		if err != nil {
			return err
		}
		if a.json {
			return a.printJSON(tl)
		}
		_, err = fmt.Fprintln(a.tty().Styled(), view.Draw(tl, a.width()))
		return err
	})
	return a.jsonFlag(cmd, "a JSON object")
}

func (a *app) diffCommand() *cobra.Command {
	cmd := a.onTask(&cobra.Command{
		Use:   "diff [TASK] [A [B]]",
		Short: "Show what changed in the world between two steps",
		Long:  "Show what changed from the end of step A (default: 0) to that of step B (default: the current one).",
	}, 0, 2, a.diff)
	return a.jsonFlag(cmd, "a JSON array of changed paths")
}

func (a *app) diff(cmd *cobra.Command, svc *session.Service, task string, args []string) error {
	st, err := svc.State(task)
	if err != nil {
		return err
	}
	steps := []int{0, st.Current}
	for i, arg := range args {
		if steps[i], err = parseStep(arg); err != nil {
			return err
		}
	}
	w, ends, overcome, err := svc.StepWorlds(task, steps[0], steps[1])
	if err != nil {
		return err
	}
	defer w.Close()
	a.out().Damaged(overcome)
	changes, err := session.Changes(cmd.Context(), w, ends[0], ends[1], nil)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(changes)
	}
	if len(changes) == 0 {
		a.notef("nothing differs between step %d and step %d", steps[0], steps[1])
	}
	return a.printChanges(cmd.Context(), w, changes, true)
}

func parseStep(arg string) (int, error) {
	id, err := strconv.Atoi(arg)
	if err != nil || id < 0 {
		return 0, exit.Usagef("STEP %q: want the number of a step, from 0", arg)
	}
	return id, nil
}
