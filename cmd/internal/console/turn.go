//go:build unix

package console

import (
	"context"

	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/session"
)

func (c *Console) notef(format string, args ...any) {
	(&show.Printer{Out: c.Err, Err: c.Err, Width: c.Width()}).Notef(format, args...)
}

// Turn runs a session's turn and returns how it ended as an error with its exit code; nil if it is done.
// report writes what happened in the task.
func (c *Console) Turn(ctx context.Context, s *session.Session, p view.Printer, report func() string) error {
	defer context.AfterFunc(ctx, func() {
		if notice.Evicted(ctx) {
			c.notef("asked to stop: a running command may end by itself for a while; a second signal ends it")
		}
	})()
	out, err := s.Run(ctx)
	if err != nil {
		return err
	}
	p.End(out, s.State(), report())
	if out.Reason == "done" && s.State().Grants.Plan {
		c.notef("the task is in plan mode: 'anamnesis resume %[1]s --plan=false --approval edits' carries the plan "+
			"out, 'anamnesis resume %[1]s \"…\"' changes it", s.Task)
	}
	return OutcomeError(s.Task, out)
}
