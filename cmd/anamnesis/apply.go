//go:build unix

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/shell"
	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/feature/worktree"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/worldstate"
)

// withTreeNames joins --worktree and a name that follows it: a flag whose value is optional reads no value from the
// next word.
func withTreeNames(args []string) []string {
	end := slices.Index(append(args, "--"), "--")
	if i := slices.Index(args[:end], "--worktree"); i >= 0 && i+1 < end && taskdir.CheckTaskID(args[i+1]) == nil {
		args = slices.Replace(slices.Clone(args), i, i+2, args[i]+"="+args[i+1])
	}
	return args
}

func (a *app) applyCommand() *cobra.Command {
	var yes, keep bool
	cmd := &cobra.Command{
		Use:   "apply TASK",
		Short: "Bring the changes of a task's worktree to the directory that it was made of",
		Long: `Show what a task that was begun with --worktree changed since, or since the last 'apply', and bring
it to the directory that the worktree was made of, after a confirmation: all of it, or nothing. Files come, not
commits. Text files that both changed are merged where their lines differ; other files that both changed are named,
and nothing is applied. The worktree stays.`,
		Args: cobra.ExactArgs(1),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) error {
			return a.apply(cmd, svc, args[0], yes, keep)
		}),
	}
	cmd.Flags().BoolVar(&keep, "keep-mine", false, "leave files that both changed as they are, and apply the others")
	cmd.Flags().BoolVar(&yes, "yes", false, "apply without a question")
	return cmd
}

func (a *app) apply(cmd *cobra.Command, svc *session.Service, task string, yes, keep bool) error {
	ctx := cmd.Context()
	st, err := svc.State(task)
	if err != nil {
		return err
	}
	t := st.Opened.Worktree
	if t == nil {
		return exit.Usagef("task %s works in %s itself: it was not begun with --worktree", task, st.Opened.Dir)
	}
	c, err := worktree.Compare(ctx, svc.Home, t, worldstate.Options{Progress: a.line().Scan})
	if err != nil {
		return err
	}
	defer c.Close()
	for _, k := range c.Conflicts {
		a.notef("conflict: %q: %s", k.Path, k.Reason)
	}
	switch {
	case len(c.Conflicts) > 0 && !keep:
		return exit.With(exit.Refused, fmt.Errorf("nothing is applied: make each file the same in %s and %s, "+
			"or apply the others with --keep-mine", t.Root, t.From))
	case len(c.List) == 0:
		a.notef("nothing to apply: %s has no change since it was made or last applied that %s lacks", t.Root, t.From)
		return nil
	}
	patch, err := c.Patch(ctx)
	if err != nil {
		return err
	}
	write := func(out io.Writer) error { _, err := io.WriteString(out, patch); return err }
	if err := a.out().Content(write); err != nil {
		return err
	}
	a.out().Changes(c.List)
	for _, path := range c.Merged {
		a.notef("merged with your changes: %q", path)
	}
	if err := a.tty().Confirm(ctx, "apply "+task, fmt.Sprintf("apply these changes to %s?", t.From), yes); err != nil {
		return err
	}
	done := a.line().Working("applying")
	res, err := c.Apply(ctx)
	done()
	if err != nil {
		return err
	}
	for _, k := range res.Kept {
		a.notef("not applied: %q: %s", k.Path, k.Reason)
	}
	a.printf("applied to %s: %d written, %d deleted\n", t.From, len(res.Written), len(res.Deleted))
	remove := []string{"rm", "-r", t.Root}
	if t.Git {
		remove = []string{"git", "-C", t.From, "worktree", "remove", "--force", t.Root} // nothing is committed
	}
	a.notef("to go back: %s", shellLine("anamnesis", "world", "restore", string(res.Source[:12]), "--dir", t.From,
		"--store", svc.Home.Store(t.Root)))
	a.notef("to remove the worktree: %s", shellLine(remove...))
	return nil
}

func shellLine(words ...string) string {
	for i, w := range words {
		words[i] = shell.QuoteIfNeeded(w)
	}
	return strings.Join(words, " ")
}
