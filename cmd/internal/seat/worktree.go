//go:build unix

package seat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/feature/worktree"
	"anamnesis/orchestrator/session"
	"anamnesis/worldstate"
)

// inTree does work in a new worktree of its directory, which is removed again if no task began in it.
func (s *Seat) inTree(ctx context.Context, w Work, do func(context.Context, Work) error) error {
	if w.Last || w.Pick {
		return exit.Usagef("--worktree begins a task in a directory of its own: leave -c and -r out; 'anamnesis " +
			"resume TASK' continues a task where it works")
	}
	svc, _, err := s.Configured(w.Dir)
	if err != nil {
		return err
	}
	from, err := session.RealDir(w.Dir)
	if err != nil {
		return err
	}
	name := w.Tree
	if name == AnyName {
		name = ""
	}
	line := view.NewProgress(s.Err)
	done := line.Working("making the worktree")
	m, err := worktree.Create(ctx, svc.Home, from, name, worldstate.Options{Progress: line.Scan})
	done()
	if errors.Is(err, worktree.ErrName) {
		err = exit.Usagef("%w", err)
	}
	if err != nil {
		return err
	}
	what := "a copy of " + m.From
	if m.Git {
		what = "a git worktree of " + m.From
	}
	if m.Uncommitted > 0 {
		what += fmt.Sprintf(", with its uncommitted changes (%d),", m.Uncommitted)
	}
	s.Warn(fmt.Sprintf("the task works in %s: %s without the files that git ignores", m.Root, what))
	for _, l := range m.Left {
		s.Warn(fmt.Sprintf("not in the worktree: %q: %s", l.Path, l.Reason))
	}
	if len(m.Nested) > 0 {
		s.Warn("repositories inside are in the worktree as files, without their .git: " + strings.Join(m.Nested, ", "))
	}
	w.Dir, w.Tree, w.Worktree = m.Dir, "", &m.Worktree
	err = do(ctx, w)
	task, none := svc.LastOwnTask(m.Dir) // none: it was refused before it began
	if errors.As(none, new(*session.UsageError)) {
		return errors.Join(err, m.Remove(ctx, svc.Home))
	}
	s.Warn(fmt.Sprintf("'anamnesis apply %s' shows its changes and brings them to %s", task, m.From))
	return err
}
