//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/beside/continuation"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) sayCommand() *cobra.Command {
	return a.steers(a.onTask(&cobra.Command{
		Use:   `say [TASK] "TEXT"`,
		Short: "Steer a running task",
	}, 1, 1, func(cmd *cobra.Command, svc *session.Service, task string, rest []string) error {
		if err := svc.Say(cmd.Context(), task, rest[0]); err != nil {
			return err
		}
		a.printf("recorded for %s; the model sees it with the next request\n", task)
		if q, err := svc.Question(task); err == nil {
			question := view.Line(timeline.QuestionText(&q.QuestionAsked), a.width())
			a.notef("%s waits for an answer first: %s", task, question)
		}
		return nil
	}))
}

func (a *app) answerCommand() *cobra.Command {
	var seq uint64
	cmd := &cobra.Command{
		Use:   "answer TASK [ANSWER]",
		Short: "Answer what a task asks",
		Long: `Answer the open question of a task, which may be running or not. Without ANSWER the question is
printed. A question about a call takes yes, always (exactly this call runs without a question in this
directory, in every task; 'rules' lists it), or no with a reason; one about a limit yes (as much again), a
new limit, or no; one about the provider yes (ask it again) or no; any other one takes your words. The
first answer counts, from here, from the page or from the task's own terminal.`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
			task, err := names.Task(svc.Home, args[0])
			if err != nil {
				return err
			}
			if len(args) == 1 {
				q, err := svc.Question(task)
				if err != nil {
					return err
				}
				return a.show(q, func() { a.out().Question(task, q) })
			}
			running, err := svc.Answer(cmd.Context(), task, seq, strings.Join(args[1:], " "), question.FromAnswer)
			if err != nil {
				return err
			}
			// A live process reads the answer by itself. Any other must be resumed, or waits for its directory.
			next := "it goes on"
			var busy *taskdir.BusyError
			if st, err := svc.State(task); err == nil && errors.As(svc.Home.CheckFree(st.Opened.Dir), &busy) &&
				busy.Task != task {
				next = fmt.Sprintf("it goes on when task %s has ended, which works in its directory", busy.Task)
			}
			if !running {
				next = exit.InBucket("'anamnesis resume "+task+"' continues it", svc.Home.Remote)
			}
			a.printf("answered %s; %s\n", task, next)
			return nil
		}),
	}
	cmd.Flags().Uint64Var(&seq, "op", 0, "answer only the question of this operation, not one that was asked since")
	return a.jsonFlag(a.steers(cmd), "the question as a JSON object")
}

func (a *app) jumpCommand() *cobra.Command {
	var reason, dir string
	var compact, overwrite, dryRun, git, proceed bool
	cmd := a.onTask(&cobra.Command{
		Use:   "jump [TASK] STEP",
		Short: "Move a task back or forward to the end of a step: its files, with --git the repository, too",
		Long: `Take a task back, or forward, to the end of a step. Files are restored; memory stays. A running
task jumps when its current step is complete, an idle one at once.

Your own changes after STEP are saved separately and kept, even if the agent changed the same
path later (a conflict, which is listed). --overwrite reverts them, too. What changed while a call
of the agent ran is yours where it is known that the call did not change it. The world before the
jump is saved and named.

--git also moves HEAD, the branch that was checked out, and the index of the git repositories of the
directory to where they stood at the end of STEP. What the jump does is printed first. Commits that
nothing else would name, and what is staged, are kept under refs/anamnesis/left/. No hook runs. A
repository in the middle of a rebase, merge or the like is refused, and so is the whole jump.

--dry-run prints what the jump would do, including whether a pass would compact the discarded
steps. --continue opens a copy of a Claude Code session that ends with STEP, with a note about
what was reverted and learned; without a terminal the commands are printed.`,
	}, 1, 1, func(cmd *cobra.Command, svc *session.Service, task string, rest []string) error {
		to, err := parseStep(rest[0])
		if err != nil {
			return err
		}
		j := op.JumpRequested{To: to, Reason: reason, Compact: compact, Overwrite: overwrite, Git: git}
		if proceed && (dryRun || a.json) {
			return exit.Usagef("--continue goes with neither --dry-run nor --json")
		}
		if dryRun {
			return a.showJump(cmd.Context(), svc, task, dir, j)
		}
		if svc, _, err = a.configured(cmp.Or(dir, ".")); err != nil {
			return err
		}
		if git && !a.json {
			// A jump that was interrupted is finished first; it was shown when it began.
			if err := a.showJump(cmd.Context(), svc, task, dir, j); err != nil && !errors.Is(err, taskdir.ErrPending) {
				return err
			}
		}
		if proceed {
			return a.jumpOn(cmd.Context(), svc, task, dir, j)
		}
		return a.jump(cmd.Context(), svc, task, dir, j)
	})
	cmd.Flags().StringVar(&dir, "dir", "", "directory in which the task continues (default: its own)")
	cmd.Flags().StringVar(&reason, "reason", "", "reason, shown to the agent")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false,
		"revert your own changes after STEP, too; they are saved in any case")
	cmd.Flags().BoolVar(&git, "git", false, "move HEAD, its branch and the index of your git repositories, too")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "print what the jump would do, and change nothing")
	cmd.Flags().BoolVar(&proceed, "continue", false, "continue the Claude Code session at STEP")
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().BoolVar(&compact, "compact", false,
		"run the anamnesis pass even when the discarded span is short; it then writes no card")
	return a.steers(cmd)
}

// jumpOn jumps and continues in a copy of the agent's session that ends there.
func (a *app) jumpOn(ctx context.Context, svc *session.Service, task, dir string, j op.JumpRequested) error {
	at, err := continuation.At(svc, task, j.To, a.getenv)
	if err != nil {
		return err
	}
	st, err := svc.State(task)
	if err != nil {
		return err
	}
	if err := a.jump(ctx, svc, task, dir, j); err != nil {
		return err
	}
	prompt, err := beside.JumpText(svc, task, st.Last)
	if err != nil {
		return err
	}
	return a.tty().Continue(ctx, at, prompt)
}

func (a *app) showJump(ctx context.Context, svc *session.Service, task, dir string, j op.JumpRequested) error {
	p, err := svc.PlanJump(ctx, task, dir, j)
	if err != nil {
		return err
	}
	return a.show(p, func() { a.out().JumpPlan(task, p) })
}

func (a *app) jump(ctx context.Context, svc *session.Service, task, dir string, j op.JumpRequested) error {
	client := a.tty().Client(nil, a.warn, func(i session.Info) view.Printer {
		if i.Banner != "" {
			fmt.Fprintln(a.stderr, i.Banner)
		}
		return view.NewText(nil, a.stderr, a.width(), i.Dir, view.NoOutputs)
	})
	next := fmt.Sprintf("'anamnesis resume %s' continues from there", task)
	if st, err := svc.State(task); err == nil && st.Opened.Origin.Recorded() {
		next = st.Opened.Origin.Agent + " reads with its next event what was reverted"
	}
	res, err := beside.Jump(ctx, svc, task, dir, j, client)
	a.warn(res.Warnings...)
	switch {
	case err != nil:
		return err
	case res.Scheduled && a.json:
		return a.printJSON(map[string]any{"task": task, "scheduled": true, "to": j.To})
	case res.Scheduled:
		a.printf("scheduled: %s jumps to step %d when its present step is complete\n", task, j.To)
		return nil
	case a.json:
		return a.printJSON(res.Done)
	}
	a.out().Jumped(task, next, res.Done)
	return nil
}
