//go:build unix

package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

func (a *app) tasksCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "List the tasks",
		Long:  "List the tasks, the one that was written last at the end, with what they cost where the models' prices are known. The tasks of subagents and imported sessions are left out unless --all is given.",
		RunE: func(*cobra.Command, []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			rows, err := taskdir.Summaries(h)
			if err != nil {
				return err
			}
			if !all {
				rows = slices.DeleteFunc(rows, func(r taskdir.Summary) bool { return r.Parent != "" || r.Imported })
			}
			if a.json {
				return a.printJSON(rows)
			}
			if len(rows) == 0 {
				a.println("no tasks yet: 'anamnesis run \"…\"' starts one")
			}
			priced := slices.ContainsFunc(rows, func(r taskdir.Summary) bool { return r.USD > 0 })
			for _, r := range rows {
				cost := ""
				switch {
				case priced && r.USD > 0:
					cost = fmt.Sprintf("%9s  ", state.Dollars(r.USD))
				case priced:
					cost = fmt.Sprintf("%9s  ", "-")
				}
				text := fmt.Sprintf("%-28s %-12s %3d steps  %s%s", r.ID, r.State, r.Steps, cost, r.Request)
				if r.Error != "" {
					text = fmt.Sprintf("%-28s %-12s 'anamnesis doctor %s' says more: %s", r.ID, r.State, r.ID, r.Error)
				}
				a.println(view.Line(text, a.width()))
			}
			return nil
		},
	}
	a.jsonFlag(cmd, "a JSON array")
	cmd.Flags().BoolVar(&all, "all", false, "with the tasks of subagents and imported sessions")
	return cmd
}

func (a *app) timelineCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "timeline TASK",
		Short: "Draw a task's operations and its tree of steps",
		Args:  cobra.ExactArgs(1),
		RunE: a.withHome(func(_ *cobra.Command, args []string, h taskdir.Home) error {
			tl, err := readTimeline(h, args[0])
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(tl)
			}
			_, err = fmt.Fprintln(a.styled(), view.Draw(tl, a.width()))
			return err
		}),
	}
	a.jsonFlag(cmd, "a JSON object")
	return cmd
}

func readTimeline(h taskdir.Home, id string) (timeline.Timeline, error) {
	b := new(timeline.Builder)
	err := taskdir.EachOp(h, id, b.Add)
	if err == nil && b.State().Last == 0 {
		err = fmt.Errorf("%w: %s has an empty stream", taskdir.ErrNoTask, id)
	}
	if err != nil {
		return timeline.Timeline{}, err
	}
	return b.Timeline(), nil
}

func (a *app) diffCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff TASK A B",
		Short: "Show what changed in the world between two steps",
		Args:  cobra.ExactArgs(3),
		RunE: a.withHome(func(cmd *cobra.Command, args []string, h taskdir.Home) error {
			return a.diff(cmd.Context(), h, args)
		}),
	}
	a.jsonFlag(cmd, "a JSON array of changed paths")
	return cmd
}

func (a *app) diff(ctx context.Context, h taskdir.Home, args []string) error {
	st, err := taskdir.ReadState(h, args[0])
	if err != nil {
		return err
	}
	var steps []int
	for _, arg := range args[1:] {
		id, err := parseStep(arg)
		if err != nil {
			return err
		}
		step, err := st.Checkpoint(id)
		if err != nil {
			return err
		}
		if !step.Saved {
			return usageError("step %d has no checkpoint: %s", id, step.NoCheckpoint)
		}
		steps = append(steps, id)
	}
	w, err := worldstate.Open(st.Opened.Dir, st.Opened.Store, &worldstate.Options{Task: args[0], Home: h.User, StoreOnly: true})
	if err != nil {
		return err
	}
	defer w.Close()
	ends, overcome, err := workspace.Commits(h, args[0], st, w, steps...)
	if err != nil {
		return err
	}
	a.out().Damaged(overcome)
	changes, err := a.changes(ctx, w, ends[0], ends[1], &diffFlags{similar: worldstate.DefaultSimilarityPercent}, nil)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(changes)
	}
	return a.printChanges(ctx, w, changes, true)
}

func parseStep(arg string) (int, error) {
	id, err := strconv.Atoi(arg)
	if err != nil || id < 0 {
		return 0, usageError("STEP %q: want the number of a step, from 0", arg)
	}
	return id, nil
}
