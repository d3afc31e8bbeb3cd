//go:build unix

package tui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/cmd/internal/tui/report"
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
	c.Started = nil
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

// exportVerb writes the conversation to a new file, by default outside of the project.
func (m *screen) exportVerb(args []string) tea.Cmd {
	svc, task := m.o.Service, m.o.Task
	dir := cmp.Or(m.info.Dir, m.o.Request.Dir)
	return m.withTask(func() (string, error) {
		path, err := report.Export(svc, task, strings.Join(args, " "))
		if err != nil {
			return "", err
		}
		text := "written to " + clean(path)
		if full, err := filepath.Abs(path); err == nil && strings.HasPrefix(full, dir+"/") {
			text += "; in this directory it counts as a change of yours, which jumps keep"
		}
		return paint.Faint.Render(text), nil
	})
}
