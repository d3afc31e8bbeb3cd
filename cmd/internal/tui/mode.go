//go:build unix

package tui

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/orchestrator/feature/planmode"
	"anamnesis/orchestrator/guard/approval"
)

// planning reports whether the agent only plans, or will from the next request on.
func (m *screen) planning() bool { return m.st.Grants.Plan }

// nextMode goes on to the next mode, as Shift-Tab does: ask, edits, plan; auto only where the user has chosen it
// before.
func (m *screen) nextMode() tea.Cmd {
	modes := []string{string(approval.ModeAsk), string(approval.ModeEdits)}
	if slices.Contains([]string{m.approval(), m.o.Request.Approval, m.o.Request.Default.Approval, m.st.Opened.Approval},
		string(approval.ModeAuto)) {
		modes = append(modes, string(approval.ModeAuto))
	}
	switch at := slices.Index(modes, m.approval()); {
	case m.planning():
		return m.setMode(modes[0], false)
	case at == len(modes)-1:
		return m.setMode(modes[at], true)
	default:
		return m.setMode(modes[at+1], false)
	}
}

// setMode changes the approval mode and whether the agent only plans: at once while it works, otherwise with the next
// request.
func (m *screen) setMode(mode string, plan bool) tea.Cmd {
	if m.opening {
		m.say("the mode can change once the task is open")
		return nil
	}
	m.o.Request.Approval, m.o.Settings.Approval, m.info.Approval = mode, mode, mode
	m.o.Request.Plan, m.o.Settings.Plan = &plan, &plan
	m.st.Grants.Mode, m.st.Grants.Plan, m.moded = mode, plan, true
	if m.pick != nil && m.pick.words {
		m.pick = nil
	}
	m.say("approval " + mode)
	if plan {
		m.say("plan mode: the agent reads and asks, and ends with a plan")
	}
	if !m.running {
		if plan {
			m.proposePlan()
		}
		return nil
	}
	ctx, s := m.ctx, m.s
	m.moded = false
	return func() tea.Msg {
		if err := s.SetMode(ctx, approval.Mode(mode), plan); err != nil {
			return errorMsg{err}
		}
		return nil
	}
}

// proposePlan asks what becomes of a plan. A typed line continues the planning.
func (m *screen) proposePlan() {
	if strings.TrimSpace(m.plan) == "" {
		return
	}
	p := &picker{title: "Carry this plan out?", words: true}
	for _, mode := range []string{m.approval(), "edits", "ask", "auto"} {
		what := map[string]string{"edits": "file edits run, other calls are asked about",
			"ask": "each change is asked about", "auto": "everything runs"}[mode]
		row := pickRow{id: mode, text: fmt.Sprintf("Yes, approval %s: %s", mode, what)}
		if what != "" && !slices.Contains(p.rows, row) {
			p.rows = append(p.rows, row)
		}
	}
	p.rows = append(p.rows, pickRow{id: "edit", text: "Edit the plan in $EDITOR first"},
		pickRow{text: "No, go on planning: type what to change"})
	p.then = func(m *screen, r pickRow) tea.Cmd {
		switch {
		case r.id == "edit":
			e := newEditing(m.ctx, "plan.md", m.plan)
			return tea.Exec(e, func(err error) tea.Msg { return planEditedMsg{e.text, cmp.Or(e.err, err)} })
		case r.id == "" && m.o.Once:
			return m.quit()
		case r.id == "":
			return nil
		}
		text := planmode.Carry
		if m.plan != m.st.Said.Answer {
			text = planmode.Edited + m.plan
		}
		m.setMode(r.id, false)
		m.unhint()
		return m.send(text)
	}
	m.pick = p
}

type planEditedMsg struct {
	text string
	err  error
}

func (m *screen) planEdited(msg planEditedMsg) tea.Cmd {
	if msg.err != nil {
		m.fail(msg.err)
	} else if text := strings.TrimSpace(msg.text); text != "" && text != strings.TrimSpace(m.plan) {
		m.plan = text
		m.print(paint.Faint.Render("the plan as you edited it:"))
		m.print(strings.Join(m.markdown(text), "\n"))
	}
	m.proposePlan()
	return nil
}

// editing lets the user change a text in their editor, which has the terminal meanwhile.
type editing struct {
	cardfile.Desk
	ctx        context.Context // of tea.ExecCommand, whose methods take none
	name, text string
	err        error
}

func newEditing(ctx context.Context, name, text string) *editing {
	return &editing{Desk: cardfile.Desk{Getenv: os.Getenv, Terminal: true}, ctx: ctx, name: name, text: text}
}

func (e *editing) SetStdin(r io.Reader)  { e.Stdin = r }
func (e *editing) SetStdout(w io.Writer) { e.Stdout = w }
func (e *editing) SetStderr(w io.Writer) { e.Stderr = w }

// Run implements tea.ExecCommand.
func (e *editing) Run() error {
	draft, text, err := e.Edit(e.ctx, e.name, []byte(e.text), "")
	if err == nil {
		e.text = string(text)
		draft.Drop()
	}
	e.err = err
	return nil
}
