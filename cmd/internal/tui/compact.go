//go:build unix

package tui

import (
	"context"
	"errors"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/orchestrator/memory"
)

// compactVerb compacts the older steps of the context.
func (m *screen) compactVerb([]string) tea.Cmd {
	if m.o.Task == "" {
		m.print(paint.Faint.Render("no task yet"))
		return nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.opening, m.activity, m.begun, m.cancel = true, "compacting the older steps", m.now, cancel
	svc, task, s, c := m.o.Service, m.o.Task, m.reclaim(), m.client()
	c.Started = nil // no turn begins, so the screen keeps its heading and figures
	return func() tea.Msg {
		defer cancel()
		var before, after int
		var err error
		if s != nil {
			before, after, err = s.Compact(ctx)
			s.Offer()
		} else {
			before, after, err = svc.Compact(ctx, task, c)
		}
		if errors.Is(err, memory.ErrNothingToCompact) {
			return doneMsg{text: err.Error()}
		}
		return doneMsg{fmt.Sprintf("the context has %s tokens, before %s; /why lists it", paint.Count(after),
			paint.Count(before)), err}
	}
}
