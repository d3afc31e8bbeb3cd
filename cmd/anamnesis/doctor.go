//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/opstream"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) doctorCommand() *cobra.Command {
	var salvage string
	cmd := &cobra.Command{
		Use:   "doctor [TASK]",
		Short: "Check that a task, or every task, is whole, and what there is of the sandbox and ripgrep; salvage a damaged task",
		Long: "Check everything a task rests on, one line a finding: the stream's lines, their chain and blobs, the snapshots\n" +
			"that operations name, the operations that snapshots name (so a lost end is seen), the vault. Nothing is changed.\n" +
			"Without TASK the first lines say what this machine has to hold commands in with, what it lacks, and whether Grep uses ripgrep.\n" +
			"The exit code is 4 when something acknowledged is damaged, 1 when only the end is torn, which the next writer sets aside.\n\n" +
			"With --salvage DIR the operations that can be read, up to the first damage, are copied into a new stream in DIR.\n" +
			"The damaged task is not touched. The vault stays where it is.",
		Args: cobra.MaximumNArgs(1),
		RunE: a.withHome(func(cmd *cobra.Command, args []string, h taskdir.Home) error {
			if cmd.Flags().Changed("salvage") {
				if len(args) == 0 || salvage == "" {
					return usageError("name the directory and the task: 'anamnesis doctor --salvage DIR TASK'")
				}
				return a.salvage(cmd.Context(), h, args[0], salvage)
			}
			if len(args) == 0 {
				if err := a.doctorMachine(cmd.Context()); err != nil {
					return err
				}
			}
			return a.doctor(cmd.Context(), h, args)
		}),
	}
	cmd.Flags().StringVar(&salvage, "salvage", "", "copy what can be read of TASK's stream into this new directory")
	a.jsonFlag(cmd, "one JSON object a task")
	return cmd
}

// doctorMachine prints what this machine has for tasks.
func (a *app) doctorMachine(ctx context.Context) error {
	d, err := inspect.ExamineMachine(ctx)
	if err != nil {
		return err
	}
	return a.show(d, func() {
		a.printf("sandbox: %s\n", d.Sandbox)
		for _, m := range d.Missing {
			a.printf("sandbox: missing: %s\n", m)
		}
		if d.Ripgrep != "" {
			a.printf("search: Grep uses %s\n", oneLine(d.Ripgrep))
		} else {
			a.printf("search: Grep finds the same without ripgrep, more slowly: %s\n", oneLine(d.NoRipgrep))
		}
	})
}

// doctor examines the named tasks, or all. Of all, one that cannot be examined
// keeps none of the others from it.
func (a *app) doctor(ctx context.Context, h taskdir.Home, named []string) error {
	ids := named
	if len(named) == 0 {
		var err error
		if ids, err = h.Tasks(); err != nil {
			return err
		}
	}
	var corrupt, torn []string
	var failed error
	for _, id := range ids {
		d, err := inspect.Examine(ctx, h, id)
		switch {
		case err != nil && (len(named) > 0 || ctx.Err() != nil):
			return err
		case err != nil:
			d = inspect.Diagnosis{Task: id, Findings: []inspect.Finding{}, NotExamined: err.Error()}
			if !errors.Is(err, taskdir.ErrNoTask) { // else it is a folder that is no task's
				failed = errors.Join(failed, err)
			}
		case d.Has(opstream.SeverityCorrupt):
			corrupt = append(corrupt, id)
		case d.Has(opstream.SeverityTorn):
			torn = append(torn, id)
		}
		if err := a.printDiagnosis(d); err != nil {
			return err
		}
	}
	if len(ids) == 0 && !a.json {
		a.println("no tasks yet")
	}
	switch {
	case len(corrupt) > 0:
		return &exitError{exitCorrupt, fmt.Errorf("corrupt: %s; 'anamnesis doctor --salvage DIR %s' copies what can be read; nothing was changed", strings.Join(corrupt, ", "), corrupt[0])}
	case failed != nil:
		return failed
	case len(torn) > 0:
		return &exitError{exitFailed, fmt.Errorf("the end is torn: %s; the next 'anamnesis resume' sets the damaged bytes aside and goes on", strings.Join(torn, ", "))}
	}
	return nil
}

func (a *app) printDiagnosis(d inspect.Diagnosis) error {
	if a.json {
		return a.printJSON(d)
	}
	var out strings.Builder
	if d.NotExamined != "" {
		a.printf("%s: not examined: %s\n", d.Task, oneLine(d.NotExamined))
		return nil
	}
	for _, f := range d.Findings {
		fmt.Fprintf(&out, "%s: %s\n", d.Task, oneLine(f.String()))
	}
	if d.Omitted > 0 {
		fmt.Fprintf(&out, "%s: and %d more findings\n", d.Task, d.Omitted)
	}
	state := "whole"
	switch {
	case d.Has(opstream.SeverityCorrupt):
		state = "corrupt"
	case d.Has(opstream.SeverityTorn):
		state = "torn at its end"
	}
	fmt.Fprintf(&out, "%s: %s: ops %d, blobs %d, commits %d\n", d.Task, state, d.Ops, d.Blobs, d.Commits)
	if _, err := fmt.Fprint(a.stdout, out.String()); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// oneLine is a text without line breaks, and with nothing that acts on a
// terminal.
func oneLine(s string) string { return strings.Join(strings.Fields(view.Clean(s)), " ") }

func (a *app) salvage(ctx context.Context, h taskdir.Home, id, to string) error {
	if err := taskdir.CheckTaskID(id); err != nil {
		return err
	}
	got, err := opstream.Salvage(ctx, h.Task(id), to)
	switch {
	case errors.Is(err, opstream.ErrNotFound):
		return fmt.Errorf("%w: %s; 'anamnesis tasks' lists them", taskdir.ErrNoTask, id)
	case errors.Is(err, opstream.ErrInvalid):
		return usageError("%v", err)
	case err != nil:
		return err
	}
	return a.show(got, func() {
		a.printf("copied ops 1-%d (%d bytes, blobs %d) of %s to %s\n", got.Records, got.Bytes, got.Blobs, id, to)
		if got.Why != "" {
			a.printf("stopped at: %s\n", oneLine(got.Why))
		}
		if got.BehindRecords > 0 {
			a.printf("%d operations behind it can be read and were not copied, since what came before them is lost:\n", got.BehindRecords)
		}
		for _, s := range got.Behind {
			a.printf("  ops %d-%d, from byte %d of %s on\n", s.First, s.Last, s.Offset, oneLine(s.File))
		}
	})
}
