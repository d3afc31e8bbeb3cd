//go:build unix

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/orchestrator"
	"anamnesis/worldstate"
)

// taskRow is what `tasks` says of one task.
type taskRow struct {
	ID      string    `json:"id"`
	Dir     string    `json:"dir"`
	State   string    `json:"state"` // running | interrupted | how the last turn ended
	PID     int       `json:"pid,omitempty"`
	Steps   int       `json:"steps"`
	Ops     uint64    `json:"ops"`
	Jumps   int       `json:"jumps"`
	Changed time.Time `json:"changed"`
	Request string    `json:"request"`
	Error   string    `json:"error,omitempty"`
}

func (a *app) tasksCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tasks",
		Short: "List the tasks",
		Args:  usageArgs(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			rows, err := listTasks(h)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(rows)
			}
			if len(rows) == 0 {
				fmt.Fprintln(a.stdout, "no tasks yet: 'anamnesis run \"…\"' starts one")
			}
			for _, r := range rows {
				text := fmt.Sprintf("%-28s %-12s %3d steps  %s", r.ID, r.State, r.Steps, r.Request)
				if r.Error != "" {
					text = fmt.Sprintf("%-28s %-12s %s", r.ID, r.State, r.Error)
				}
				fmt.Fprintln(a.stdout, view.Line(text, a.width()))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// listTasks reads every task. One that cannot be read is listed as such.
func listTasks(h orchestrator.Home) ([]taskRow, error) {
	ids, err := h.Tasks()
	if err != nil {
		return nil, err
	}
	rows := make([]taskRow, 0, len(ids))
	for _, id := range ids {
		st, err := orchestrator.ReadState(h, id)
		if err != nil {
			rows = append(rows, taskRow{ID: id, State: "unreadable", Changed: changed(h, id), Error: err.Error()})
			continue
		}
		rows = append(rows, rowOf(h, id, st))
	}
	slices.SortStableFunc(rows, func(x, y taskRow) int { return x.Changed.Compare(y.Changed) })
	return rows, nil
}

// rowOf says how a task is.
func rowOf(h orchestrator.Home, id string, st *orchestrator.State) taskRow {
	row := taskRow{
		ID: id, Dir: st.Opened.Dir, Changed: changed(h, id), Steps: st.EndedSteps(), Ops: st.Last, Jumps: st.Totals.Jumps, Request: st.Request,
		State: "interrupted", // its process went away in the middle of a turn or a jump
	}
	if pid := orchestrator.Live(h, id); pid != 0 {
		row.State, row.PID = "running", pid
	} else if !st.Turn.Open && st.Turn.End != nil && st.Jumping == nil && st.Pending == nil {
		row.State = st.Turn.End.Reason
	}
	return row
}

// changed is when a task's stream was last written.
func changed(h orchestrator.Home, id string) time.Time {
	var last time.Time
	files, err := filepath.Glob(filepath.Join(h.Task(id), "ops", "*.jsonl"))
	if err != nil {
		return last
	}
	for _, f := range files {
		if info, err := os.Stat(f); err == nil && info.ModTime().After(last) {
			last = info.ModTime()
		}
	}
	return last.UTC()
}

// lastTask is the task of a directory that was written last.
func lastTask(h orchestrator.Home, dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", usageError("--dir %s: %v", dir, err)
	}
	rows, err := listTasks(h)
	if err != nil {
		return "", err
	}
	for _, r := range slices.Backward(rows) {
		if r.Dir == abs {
			return r.ID, nil
		}
	}
	return "", usageError("no task has worked in %s: 'anamnesis tasks' lists them, 'anamnesis resume TASK' names one", abs)
}

func (a *app) timelineCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "timeline TASK",
		Short: "Draw a task's operations and its tree of steps",
		Args:  usageArgs(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			tl, err := readTimeline(h, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(tl)
			}
			_, err = fmt.Fprintln(a.styled(), view.Draw(tl, a.width()))
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func readTimeline(h orchestrator.Home, id string) (timeline.Timeline, error) {
	b := new(timeline.Builder)
	err := orchestrator.EachOp(h, id, b.Add)
	if err == nil && b.State().Last == 0 {
		err = fmt.Errorf("%w: %s has an empty stream", orchestrator.ErrNoTask, id)
	}
	if err != nil {
		return timeline.Timeline{}, err
	}
	return b.Timeline(), nil
}

func (a *app) diffCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "diff TASK A B",
		Short: "Show what changed in the world between two steps",
		Args:  usageArgs(cobra.ExactArgs(3)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			return a.diff(cmd.Context(), h, args, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array of changed paths")
	return cmd
}

func (a *app) diff(ctx context.Context, h orchestrator.Home, args []string, asJSON bool) error {
	st, err := orchestrator.ReadState(h, args[0])
	if err != nil {
		return err
	}
	var ends [2]worldstate.ID
	for i, arg := range args[1:] {
		id, err := parseStep(arg)
		if err != nil {
			return err
		}
		step, err := st.Checkpoint(id)
		if err != nil {
			return err
		}
		if step.Commit == "" {
			return usageError("step %d has no checkpoint: %s", id, step.NoCheckpoint)
		}
		ends[i] = worldstate.ID(step.Commit)
	}
	w, err := worldstate.Open(st.Opened.Dir, st.Opened.Store, &worldstate.Options{Task: args[0], Home: h.User})
	if err != nil {
		return err
	}
	defer w.Close()
	changes, err := a.changes(ctx, w, ends[0], ends[1], &diffFlags{similar: worldstate.DefaultSimilarityPercent}, nil)
	if err != nil {
		return err
	}
	if asJSON {
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
