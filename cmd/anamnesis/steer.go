//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator"
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
			if _, err := orchestrator.ReadState(h, args[0]); err != nil {
				return err
			}
			err = orchestrator.Send(cmd.Context(), h, args[0], orchestrator.Command{Verb: "say", Text: args[1]})
			if errors.Is(err, orchestrator.ErrNotLive) {
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
	var fold, overwrite bool
	cmd := &cobra.Command{
		Use:   "jump TASK STEP",
		Short: "Take a task back, or over, to the end of a step",
		Long: "Take a task back, or over, to the end of a step: files return, memory stays.\n" +
			"A running task jumps when its present step is complete; one that is not running jumps now.\n" +
			"What you changed since the last step is saved and kept; --overwrite reverts it, too.",
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
			return a.jump(cmd.Context(), h, args[0], orchestrator.Command{Verb: "jump", To: to, Reason: reason, Fold: fold, Overwrite: overwrite})
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "a person asked for it", "why; the agent is told")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "revert your own edits since the last step, too; they are saved in either case")
	cmd.Flags().BoolVar(&fold, "fold", false, "run the anamnesis pass even when the discarded span is short")
	return cmd
}

func (a *app) jump(ctx context.Context, h orchestrator.Home, task string, c orchestrator.Command) error {
	st, err := orchestrator.ReadState(h, task)
	if err != nil {
		return err
	}
	err = orchestrator.Send(ctx, h, task, c)
	if err == nil {
		fmt.Fprintf(a.stdout, "scheduled: %s jumps to step %d when its present step is complete\n", task, c.To)
		return nil
	}
	if !errors.Is(err, orchestrator.ErrNotLive) {
		return err
	}
	// Nobody runs it: this process makes the jump. The pass uses the task's
	// model when it can be reached and the extractor otherwise.
	m, modelErr := a.chooseModel(ctx, st.Model, st.BaseURL)
	if modelErr != nil {
		fmt.Fprintf(a.stderr, "anamnesis: warning: the model cannot be reached; a pass is written by the extractor\n")
	}
	t, err := orchestrator.OpenTask(ctx, h, task, orchestrator.Options{
		Model: m.model, Recreate: true, Secrets: a.secrets(nil), Program: "anamnesis " + version, AfterAppend: a.afterAppend, WorldHook: a.worldHook,
	})
	if err != nil {
		return err
	}
	done, err := t.JumpNow(ctx, op.JumpRequested{To: c.To, Reason: c.Reason, Fold: c.Fold, Overwrite: c.Overwrite}, &op.TaskResumed{PID: os.Getpid(), Program: "anamnesis " + version})
	if err := errors.Join(err, t.Close()); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "%s is at step %d: %d file(s) changed; 'anamnesis resume %s' goes on from there\n", task, done.To, done.NReverted, task)
	for _, k := range done.Kept {
		fmt.Fprintf(a.stdout, "kept %s: %s\n", k.Path, k.Reason)
	}
	return nil
}
