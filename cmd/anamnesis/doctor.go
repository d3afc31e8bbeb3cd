//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/install"
	"anamnesis/cmd/internal/names"
	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/opstream"
	"anamnesis/orchestrator/beside"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) doctorCommand() *cobra.Command {
	var salvage string
	cmd := &cobra.Command{
		Use:   "doctor [TASK]",
		Short: "Check tasks and the sandbox; salvage a damaged task",
		Long: `Check a task's stream (lines, chain, blobs), its snapshots and its vault, and print one line for
each finding. Snapshots and operations are compared in both directions, so a lost end is found.
Nothing is changed. Without TASK, the first lines say which sandbox mechanisms this machine
provides and which it lacks. The exit code is 4 if acknowledged data is damaged, 1 if only the end
is torn, which the next writer sets aside, and 2 without TASK if the state folder cannot be written.

With --salvage DIR, copy the operations before the first damage into a new stream in DIR. The
damaged task is not changed, and the vault is not copied.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.withHome(func(cmd *cobra.Command, args []string, h taskdir.Home) error {
			for i := range args {
				var err error
				if args[i], err = names.Task(h, args[i]); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("salvage") {
				if len(args) == 0 || salvage == "" {
					return exit.Usagef("name the directory and the task: 'anamnesis doctor --salvage DIR TASK'")
				}
				return a.salvage(cmd.Context(), h, args[0], salvage)
			}
			if len(args) == 0 {
				// What all tasks depend on comes first, since it may explain what is wrong with each.
				d, err := inspect.ExamineMachine(cmd.Context())
				if err == nil {
					err = a.show(d, func() { a.out().Machine(d) })
				}
				if err != nil {
					return err
				}
				if !a.json {
					a.doctorCards(h)
					a.doctorAgents(cmd.Context(), h)
				}
			}
			err := a.doctor(cmd.Context(), h, args)
			if writable := unix.Access(h.State, unix.W_OK); err == nil && len(args) == 0 && writable != nil &&
				!errors.Is(writable, unix.ENOENT) { // nothing was recorded yet
				err = &fs.PathError{Op: "write to", Path: h.State, Err: writable}
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&salvage, "salvage", "", "copy the readable part of TASK's stream into this new directory")
	return a.jsonFlag(cmd, "one JSON object a task")
}

// doctorCards names damage to the cards' files and to the lists of their reviews, which opening the
// folders reports, and what a 'kb redact' of an earlier version left.
func (a *app) doctorCards(h taskdir.Home) {
	for _, dir := range []string{h.KnowledgeBase(), projectKB()} {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		for _, name := range []string{".git-redacting", ".git-redacted", ".git-replaced"} {
			path := filepath.Join(dir, name)
			if _, err := os.Lstat(path); err == nil {
				a.notef("%s was left by an interrupted 'kb redact' of an earlier version and may hold what was "+
					"redacted; if 'git -C %s log' shows the cards' history, delete it", path, dir)
			}
		}
		store, err := a.openKB(dir, existing, knowledgebase.Options{})
		if err != nil {
			a.notef("%v", err)
			continue
		}
		store.Close()
	}
}

// doctorAgents prints findings about the recording of other agents, a line each.
func (a *app) doctorAgents(ctx context.Context, h taskdir.Home) {
	lines := beside.Findings(h, ".", beside.Program())
	if p, err := install.Here(h, a.getenv); err == nil {
		lines = slices.Concat(p.Surroundings("."), p.Findings(ctx), lines)
	}
	for _, line := range lines {
		a.println(view.Line(line, 500))
	}
}

// doctor examines the named tasks, or all. When it examines all, one that cannot be examined
// does not stop it.
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
		done := a.line().Working("examining " + id)
		d, err := inspect.Examine(ctx, h, id)
		done()
		switch {
		case err != nil && (len(named) > 0 || ctx.Err() != nil):
			return err
		case err != nil:
			d = inspect.Diagnosis{Task: id, Findings: []inspect.Finding{}, NotExamined: exit.Text(err)}
			if !errors.Is(err, taskdir.ErrNoTask) { // otherwise the folder is not a task
				failed = errors.Join(failed, err)
			}
		case d.Has(opstream.SeverityCorrupt):
			corrupt = append(corrupt, id)
		case d.Has(opstream.SeverityTorn):
			torn = append(torn, id)
		}
		if err := a.show(d, func() { a.out().Diagnosis(d) }); err != nil {
			return err
		}
	}
	if len(ids) == 0 && !a.json {
		a.println("no tasks yet")
	}
	switch {
	case len(corrupt) > 0:
		return exit.With(exit.Corrupt, fmt.Errorf(
			"corrupt: %s; 'anamnesis doctor --salvage DIR %s' copies what can be read; nothing was changed",
			strings.Join(corrupt, ", "), corrupt[0]))
	case failed != nil:
		return failed
	case len(torn) > 0:
		return exit.With(exit.Failed, fmt.Errorf(
			"the end is torn: %s; the next 'anamnesis resume' sets the damaged bytes aside and continues",
			strings.Join(torn, ", ")))
	}
	return nil
}

func (a *app) salvage(ctx context.Context, h taskdir.Home, id, to string) error {
	got, err := taskdir.Salvage(ctx, h, id, to)
	if errors.Is(err, opstream.ErrInvalid) {
		return exit.Usagef("%v", err)
	}
	if err != nil {
		return err
	}
	return a.show(got, func() { a.out().Salvaged(id, to, got) })
}
