//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

func (a *app) sayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   `say TASK "TEXT"`,
		Short: "Steer a running task",
		Args:  usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			if args[1] == "" {
				return usageError("the text is empty: say something")
			}
			if _, err := taskdir.ReadState(h, args[0]); err != nil {
				return err
			}
			err = taskdir.Send(cmd.Context(), h, args[0], taskdir.Command{Verb: "say", Text: args[1]})
			if errors.Is(err, taskdir.ErrNotLive) {
				return fmt.Errorf("%w; 'anamnesis resume %s \"…\"' starts it with your words", err, args[0])
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(a.stdout, "said to %s; it is recorded and enters with the next request\n", args[0])
			return nil
		},
	}
}

func (a *app) jumpCommand() *cobra.Command {
	var reason string
	var fold, overwrite, dryRun, asJSON bool
	cmd := &cobra.Command{
		Use:   "jump TASK STEP",
		Short: "Take a task back, or over, to the end of a step",
		Long: "Take a task back, or over, to the end of a step: files return, memory stays.\n" +
			"A running task jumps when its present step is complete; one that is not running jumps now.\n" +
			"What you changed after STEP, while none of the agent's calls ran, is saved apart and kept, also where the agent\n" +
			"changed it again (a conflict, which is listed); --overwrite reverts it, too. What you changed while a call ran\n" +
			"is part of its step. The world as it was before the jump is saved and named in any case.\n" +
			"--dry-run says what the jump would do, and whether a pass would fold what is left; it does nothing.",
		Args: usageArgs(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.home()
			if err != nil {
				return err
			}
			to, err := parseStep(args[1])
			if err != nil {
				return err
			}
			if dryRun {
				return a.showJump(cmd.Context(), h, args[0], op.JumpRequested{To: to, Fold: fold, Overwrite: overwrite}, asJSON)
			}
			return a.jump(cmd.Context(), h, args[0], taskdir.Command{Verb: "jump", To: to, Reason: reason, Fold: fold, Overwrite: overwrite}, asJSON)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the agent is told")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "revert what you changed after STEP, too; it is saved in either case")
	cmd.Flags().BoolVarP(&dryRun, "dry-run", "n", false, "say what the jump would do, and do nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&fold, "fold", false, "run the anamnesis pass even when the discarded span is short")
	return cmd
}

// showJump says what a jump would do.
func (a *app) showJump(ctx context.Context, h taskdir.Home, task string, j op.JumpRequested, asJSON bool) error {
	p, err := inspect.PlanJump(ctx, h, task, j)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(p)
	}
	a.tellDamaged(p.Damaged)
	when := "would jump now"
	if p.Running {
		when = "is running and would jump when its present step is complete"
	}
	fmt.Fprintf(a.stdout, "%s %s: step %d to step %d\n", task, when, p.From, p.To)
	if p.UnderWay > 0 {
		fmt.Fprintf(a.stdout, "step %d is under way and would end first; what its calls changed since step %d ended counts to it\n", p.UnderWay, p.From)
	}
	for _, r := range p.Discarded {
		fmt.Fprintf(a.stdout, "leave   ops %s\n", r)
	}
	a.printPasses(p)
	if p.DirGone {
		fmt.Fprintln(a.stdout, "the directory is gone; the jump makes it again with every file of the step")
		return nil
	}
	a.tellLost(p.World.BaseLost, "edits count since the newest whole step before it, else every path that differs is kept; --overwrite restores it")
	a.printMoves("write", p.World.Write, "delete", p.World.Delete, p.World.Keep)
	for _, path := range p.World.Conflicts {
		fmt.Fprintf(a.stdout, "%-7s %q: changed again since; the version kept comes back\n", "conflict", path)
	}
	if p.World.Empty() {
		fmt.Fprintln(a.stdout, "no file would be moved")
	}
	return nil
}

// printPasses says whether a jump would fold what it leaves, in the words that it
// itself uses.
func (a *app) printPasses(p inspect.JumpPlan) {
	for _, pass := range p.Passes {
		done := op.PassDone{Trigger: pass.Trigger, RangeTokens: pass.Tokens, EAS: p.EAS}
		fmt.Fprintf(a.stdout, "pass    ops %s: %s\n", pass.Ops, timeline.Describe(op.Op{Body: &done}, ""))
	}
	if len(p.Passes) == 0 && p.Raw > 0 {
		fmt.Fprintf(a.stdout, "no pass: %d tokens discarded in all <= EAS %d\n", p.Raw, p.EAS)
	}
}

func (a *app) jump(ctx context.Context, h taskdir.Home, task string, c taskdir.Command, asJSON bool) error {
	st, err := taskdir.ReadState(h, task)
	if err != nil {
		return err
	}
	err = taskdir.Send(ctx, h, task, c)
	if err == nil && asJSON {
		return a.printJSON(map[string]any{"task": task, "scheduled": true, "to": c.To})
	}
	if err == nil {
		fmt.Fprintf(a.stdout, "scheduled: %s jumps to step %d when its present step is complete\n", task, c.To)
		return nil
	}
	if !errors.Is(err, taskdir.ErrNotLive) {
		return err
	}
	if err := st.CanJump(c.To); err != nil {
		return err
	}
	done, err := a.jumpHere(ctx, h, st, c)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(done)
	}
	a.tellJump(st, done)
	return nil
}

// jumpHere makes a jump in a task that nobody runs. A pass asks the task's
// model when it can be reached; otherwise the extractor writes.
func (a *app) jumpHere(ctx context.Context, h taskdir.Home, st *state.State, c taskdir.Command) (*op.JumpDone, error) {
	task := st.Opened.Task
	a.tellUnset(task, st.Redact)
	p := view.NewText(nil, a.stderr, a.width(), st.Opened.Dir)
	m, modelErr := a.chooseModel(ctx, st.Model, st.BaseURL, "")
	if modelErr == nil {
		m.retries.set(p.Retry)
		if m.banner != "" {
			fmt.Fprintln(a.stderr, m.banner)
		}
	}
	event := func(o op.Op) {
		p.Op(o)
		if b, ok := o.Body.(*op.PassDone); ok && modelErr != nil && b.Writer != "model" {
			fmt.Fprintf(a.stderr, "anamnesis: warning: the block was written without the model: %v\n", modelErr)
		}
	}
	t, err := a.idleTask(ctx, h, st, runtime.Options{Model: m.model, Event: event, Passing: p.Passing})
	if err != nil {
		return nil, err
	}
	done, err := t.JumpNow(ctx, op.JumpRequested{To: c.To, Reason: c.Reason, Fold: c.Fold, Overwrite: c.Overwrite}, a.resumedHere())
	a.tellDamaged(t.Damaged())
	if err != nil && t.State().Jumping != nil {
		err = fmt.Errorf("%w; the jump to step %d has begun: 'anamnesis jump %s %d' or 'anamnesis resume %s' makes it, 'anamnesis world abandon --task %s' ends it and leaves the files", err, c.To, t.ID, c.To, t.ID, t.ID)
	}
	return done, closing(err, t.Close())
}

// idleTask opens a task that nobody runs for a verb of a user's; of o the model, the
// callbacks and AbandonRestore count.
func (a *app) idleTask(ctx context.Context, h taskdir.Home, st *state.State, o runtime.Options) (*runtime.Task, error) {
	t, err := runtime.OpenTask(ctx, h, st.Opened.Task, runtime.Options{
		Model: o.Model, AbandonRestore: o.AbandonRestore, Recreate: true, Secrets: a.taskSecrets(st.Opened.Dir, st.Redact), Program: "anamnesis " + version, Event: o.Event, Passing: o.Passing,
		AfterAppend: a.afterAppend, WorldHook: a.worldHook, SealAfter: a.sealAfter, CheckpointEvery: a.checkpointEvery,
	})
	if err != nil {
		return nil, err
	}
	a.tellRefused(t)
	return t, nil
}

func (a *app) resumedHere() *op.TaskResumed {
	return &op.TaskResumed{PID: os.Getpid(), Program: "anamnesis " + version}
}

// maxToldPaths is how many paths a jump names on the terminal.
const maxToldPaths = 20

func (a *app) tellJump(st *state.State, done *op.JumpDone) {
	fmt.Fprintf(a.stdout, "%s is at step %d: %d file(s) changed; 'anamnesis resume %s' goes on from there\n",
		st.Opened.Task, done.To, done.NReverted, st.Opened.Task)
	for i, path := range done.Reverted {
		if i == maxToldPaths {
			fmt.Fprintf(a.stdout, "changed: and %d more\n", done.NReverted-i)
			break
		}
		fmt.Fprintf(a.stdout, "changed: %q\n", path)
	}
	edits := false
	for _, k := range done.Kept {
		fmt.Fprintf(a.stdout, "kept %q: %s\n", k.Path, k.Reason)
		edits = edits || worldstate.Skip{Path: k.Path, Reason: k.Reason}.Edited()
	}
	if more := done.NKept - len(done.Kept); more > 0 {
		fmt.Fprintf(a.stdout, "kept: and %d more\n", more)
	}
	for _, path := range done.Conflicts {
		fmt.Fprintf(a.stdout, "conflict %q: changed again since; the version kept comes back\n", path)
	}
	if edits {
		fmt.Fprintln(a.stdout, "--overwrite takes back what you changed, too")
	}
	if done.NReverted > 0 {
		fmt.Fprintf(a.stdout, "as it was before: anamnesis world restore --task %s %.12s [--path P]\n", st.Opened.Task, done.Saved)
	}
}
