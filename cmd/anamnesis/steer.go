//go:build unix

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

func (a *app) sayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   `say TASK "TEXT"`,
		Short: "Steer a running task",
		Args:  cobra.ExactArgs(2),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
			if err := svc.Say(cmd.Context(), args[0], args[1]); err != nil {
				return err
			}
			a.printf("said to %s; it is recorded and enters with the next request\n", args[0])
			return nil
		}),
	}
}

func (a *app) jumpCommand() *cobra.Command {
	var reason string
	var fold, overwrite, dryRun bool
	cmd := &cobra.Command{
		Use:   "jump TASK STEP",
		Short: "Take a task back, or over, to the end of a step",
		Long: "Take a task back, or over, to the end of a step: files return, memory stays.\n" +
			"A running task jumps when its present step is complete; one that is not running jumps now.\n" +
			"What you changed after STEP, while none of the agent's calls ran, is saved apart and kept, also where the agent\n" +
			"changed it again (a conflict, which is listed); --overwrite reverts it, too. What you changed while a call ran\n" +
			"is part of its step. The world as it was before the jump is saved and named in any case.\n" +
			"--dry-run says what the jump would do, and whether a pass would fold what is left; it does nothing.",
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			svc, _, err := a.configured(".")
			if err != nil {
				return err
			}
			to, err := parseStep(args[1])
			if err != nil {
				return err
			}
			j := op.JumpRequested{To: to, Reason: reason, Fold: fold, Overwrite: overwrite}
			if dryRun {
				return a.showJump(cmd.Context(), svc, args[0], j)
			}
			return a.jump(cmd.Context(), svc, args[0], j)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the agent is told")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "revert what you changed after STEP, too; it is saved in either case")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "say what the jump would do, and do nothing")
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().BoolVar(&fold, "fold", false, "run the anamnesis pass even when the discarded span is short")
	return cmd
}

// showJump says what a jump would do.
func (a *app) showJump(ctx context.Context, svc *session.Service, task string, j op.JumpRequested) error {
	p, err := svc.PlanJump(ctx, task, j)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(p)
	}
	a.tellDamaged(p.Damaged)
	when := "would jump now"
	if p.Running {
		when = "is running and would jump when its present step is complete"
	}
	a.printf("%s %s: step %d to step %d\n", task, when, p.From, p.To)
	if p.UnderWay > 0 {
		a.printf("step %d is under way and would end first; what its calls changed since step %d ended counts to it\n", p.UnderWay, p.From)
	}
	for _, r := range p.Discarded {
		a.printf("leave   ops %s\n", r)
	}
	a.printPasses(p)
	if p.DirGone {
		a.println("the directory is gone; the jump makes it again with every file of the step")
		return nil
	}
	a.tellLost(p.World.BaseLost, "edits count since the newest whole step before it, else every path that differs is kept; --overwrite restores it")
	a.printMoves("write", p.World.Write, "delete", p.World.Delete, p.World.Keep)
	for _, path := range p.World.Conflicts {
		a.printf("%-7s %q: changed again since; the version kept comes back\n", "conflict", path)
	}
	if p.World.Empty() {
		a.println("no file would be moved")
	}
	return nil
}

// printPasses says whether a jump would fold what it leaves, in the words that it
// itself uses.
func (a *app) printPasses(p inspect.JumpPlan) {
	for _, pass := range p.Passes {
		done := op.PassDone{Trigger: pass.Trigger, RangeTokens: pass.Tokens, EAS: p.EAS}
		a.printf("pass    ops %s: %s\n", pass.Ops, timeline.Describe(op.Op{Body: &done}, ""))
	}
	if len(p.Passes) == 0 && p.Raw > 0 {
		a.printf("no pass: %d tokens discarded in all <= EAS %d\n", p.Raw, p.EAS)
	}
}

func (a *app) jump(ctx context.Context, svc *session.Service, task string, j op.JumpRequested) error {
	client := a.client(nil, func(i session.Info) view.Printer {
		if i.Banner != "" {
			fmt.Fprintln(a.stderr, i.Banner)
		}
		return view.NewText(nil, a.stderr, a.width(), i.Dir)
	})
	res, err := svc.Jump(ctx, task, j, client)
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
	a.tellJump(task, res.Done)
	return nil
}

// maxToldPaths is how many paths a jump names on the terminal.
const maxToldPaths = 20

func (a *app) tellJump(task string, done *op.JumpDone) {
	a.printf("%s is at step %d: %d file(s) changed; 'anamnesis resume %s' goes on from there\n",
		task, done.To, done.NReverted, task)
	for i, path := range done.Reverted {
		if i == maxToldPaths {
			a.printf("changed: and %d more\n", done.NReverted-i)
			break
		}
		a.printf("changed: %q\n", path)
	}
	edits := false
	for _, k := range done.Kept {
		a.printf("kept %q: %s\n", k.Path, k.Reason)
		edits = edits || worldstate.Skip{Path: k.Path, Reason: k.Reason}.Edited()
	}
	if more := done.NKept - len(done.Kept); more > 0 {
		a.printf("kept: and %d more\n", more)
	}
	for _, path := range done.Conflicts {
		a.printf("conflict %q: changed again since; the version kept comes back\n", path)
	}
	if edits {
		a.println("--overwrite takes back what you changed, too")
	}
	if done.NReverted > 0 {
		a.printf("as it was before: anamnesis world restore --task %s %.12s [--path P]\n", task, done.Saved)
	}
}
