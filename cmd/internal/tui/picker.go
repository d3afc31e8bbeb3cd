//go:build unix

package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

// maxNamed is how many paths are named.
const maxNamed = 8

// picker is a list of which the user picks one.
type picker struct {
	title string
	rows  []pickRow
	at    int
	yesNo bool // y takes the first row, n the second
	then  func(*screen, pickRow) tea.Cmd
}

// pickRow is one choice.
type pickRow struct {
	text string
	id   string // of a task
	step int
	more string // shown below the list while the row is chosen
	now  bool   // where the task is
}

// Messages of lists.
type (
	pickedMsg struct{ pick *picker }
	planMsg   struct {
		step int
		plan inspect.JumpPlan
		err  error
	}
	stepsMsg struct { // what a turn changed
		changed int
		names   []string
		took    time.Duration
	}
)

func (p *picker) press(m *screen, key string) tea.Cmd {
	if i := slices.Index([]string{"y", "n"}, key); p.yesNo && i >= 0 {
		p.at, key = i, "enter"
	}
	switch key {
	case "up", "ctrl+p":
		p.at = max(0, p.at-1)
	case "down", "ctrl+n":
		p.at = min(len(p.rows)-1, p.at+1)
	case "pgup":
		p.at = max(0, p.at-10)
	case "pgdown":
		p.at = min(len(p.rows)-1, p.at+10)
	case "home":
		p.at = 0
	case "end":
		p.at = len(p.rows) - 1
	case "enter":
		m.pick = nil
		return p.then(m, p.rows[p.at])
	case "esc":
		m.pick = nil
	}
	return nil
}

func (p *picker) view(width, height int) (lines []string, cursor *tea.Cursor) {
	lines = []string{paint.Faint.Render(strings.Repeat("─", width)), paint.Cut(paint.Bold.Render(p.title), width)}
	n := max(3, min(15, height-6))
	first := max(0, min(p.at-n/2, len(p.rows)-n))
	for i, r := range p.rows[first:min(first+n, len(p.rows))] {
		mark, style := "  ", paint.Faint
		if first+i == p.at {
			mark, style, cursor = "❯ ", paint.Bold, tea.NewCursor(0, len(lines))
		}
		if r.now {
			mark = mark[:len(mark)-1] + "●"
		}
		lines = append(lines, paint.Cut(style.Render(mark+" "+r.text), width))
	}
	if p.rows[p.at].more != "" {
		lines = append(lines, paint.Faint.Render(paint.Cut("   "+p.rows[p.at].more, width)))
	}
	return append(lines, paint.Faint.Render(paint.Cut(fmt.Sprintf("%d of %d · ↑↓ choose · Enter takes it · Esc goes back", p.at+1, len(p.rows)), width))), cursor
}

// pickTask lists the directory's tasks, the last one first.
func (m *screen) pickTask() tea.Cmd {
	svc, dir := m.o.Service, m.o.Request.Dir
	return func() tea.Msg {
		rows, err := svc.Tasks()
		if err != nil {
			return errorMsg{err}
		}
		real, err := session.RealDir(dir)
		if err != nil {
			return errorMsg{err}
		}
		rows = slices.DeleteFunc(rows, func(r taskdir.Summary) bool { return r.Dir != real || r.Parent != "" })
		p := &picker{title: "Tasks of this directory", then: func(m *screen, r pickRow) tea.Cmd { return m.switchTo(r.id) }}
		for _, r := range slices.Backward(rows) {
			request := oneLine(clean(r.Request))
			p.rows = append(p.rows, pickRow{id: r.ID, more: request, text: fmt.Sprintf("%s  %-11s %3d steps  %s", r.Changed.Local().Format("01-02 15:04"), r.State, r.Steps, request)})
		}
		if len(p.rows) == 0 {
			return textMsg{paint.Faint.Render("no task has worked in this directory yet")}
		}
		return pickedMsg{p}
	}
}

// switchTo selects the task that the next request continues.
func (m *screen) switchTo(task string) tea.Cmd {
	closing := m.close()
	m.s = nil
	m.o.Task = task
	m.print("task " + paint.Bold.Render(task) + paint.Faint.Render(": the next request continues it"))
	if st, err := m.o.Service.State(task); err == nil {
		m.st, m.info = st, session.Info{Task: task, Dir: st.Opened.Dir, Model: st.Model, EAS: st.EAS, EASFrom: st.Opened.EASFrom, Approval: st.Approval}
		if st.Request != "" {
			m.print(paint.Faint.Render("last: ") + paint.Cut(oneLine(clean(st.Request)), m.width-8))
		}
		if st.Answer != "" {
			m.md.Fit(m.width, m.theme)
			m.print(strings.Join(m.md.Render(st.Answer), "\n"))
		}
	}
	return closing
}

// pickStep lists the steps to jump to, the newest first, each with what was done in it.
func (m *screen) pickStep() tea.Cmd {
	task, svc := m.o.Task, m.o.Service
	if task == "" {
		m.say("no task yet: there is nothing to jump back to")
		return nil
	}
	return func() tea.Msg {
		b := new(timeline.Builder)
		if err := svc.Ops(task, 0, b.Add); err != nil {
			return errorMsg{err}
		}
		p := &picker{title: "Jump to the end of a step: files go back, memory stays", then: func(m *screen, r pickRow) tea.Cmd { return m.planJump(r.step) }}
		tl := b.Timeline()
		for _, r := range slices.Backward(tl.Rows) {
			if r.Kind != timeline.RowStep {
				continue
			}
			what := ""
			if r.Changed > 0 {
				what = quote.Number(r.Changed, "file")
			}
			text := fmt.Sprintf("step %-3d %-8s %s", r.Step, what, oneLine(clean(r.Text)))
			if !r.OnPath {
				text += "  (left)"
			}
			p.rows = append(p.rows, pickRow{step: r.Step, text: text, more: changed(r), now: r.Step == tl.Current})
			if r.Step == tl.Current {
				p.at = min(len(p.rows), len(tl.Rows)-1)
			}
		}
		if p.at = min(p.at, len(p.rows)-1); p.at < 0 {
			return textMsg{paint.Faint.Render("no step has ended yet")}
		}
		return pickedMsg{p}
	}
}

// changed names the files that a step changed.
func changed(r timeline.Row) string {
	text := strings.Join(r.Paths, ", ")
	switch more := r.Changed - len(r.Paths); {
	case r.Step == 0:
		return ""
	case r.Changed == 0:
		return fmt.Sprintf("step %d changed no file", r.Step)
	case more > 0:
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("step %d changed %s", r.Step, clean(text))
}

// planJump asks what a jump would do.
func (m *screen) planJump(to int) tea.Cmd {
	ctx, svc, task := m.ctx, m.o.Service, m.o.Task
	return func() tea.Msg {
		plan, err := svc.PlanJump(ctx, task, op.JumpRequested{To: to})
		return planMsg{to, plan, err}
	}
}

// planned shows what a jump would do and asks whether to make it.
func (m *screen) planned(msg planMsg) {
	if msg.err != nil {
		m.fail(msg.err)
		return
	}
	p := msg.plan
	m.print(paint.Yellow.Render(fmt.Sprintf("↩ from step %d to step %d would:", p.From, p.To)))
	list := func(what string, paths []string) {
		if len(paths) == 0 {
			return
		}
		text := strings.Join(paths[:min(len(paths), maxNamed)], ", ")
		if more := len(paths) - maxNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		m.print(fmt.Sprintf("  %-8s %s", what, clean(text)))
	}
	list("write", p.World.Write)
	list("delete", p.World.Delete)
	var kept []string
	for _, k := range p.World.Keep {
		kept = append(kept, k.Path)
	}
	list("keep", kept)
	list("conflict", p.World.Conflicts)
	if p.World.Empty() {
		m.print("  move no file")
	}
	for _, pass := range p.Passes {
		m.print(fmt.Sprintf("  fold %s tokens into a block (%s)", paint.Count(pass.Tokens), pass.Trigger))
	}
	if len(p.Passes) == 0 && p.Raw > 0 {
		m.print(fmt.Sprintf("  leave the %s tokens of those steps in the context as they are (EAS %s)", paint.Count(p.Raw), paint.Count(p.EAS)))
	}
	m.pick = &picker{title: fmt.Sprintf("Jump to step %d?", p.To), yesNo: true, rows: []pickRow{{text: "Yes, jump", step: 1}, {text: "No, stay"}}, then: func(m *screen, r pickRow) tea.Cmd {
		if r.step == 0 {
			return nil
		}
		return m.jump(p.To)
	}}
}

// jump jumps to a step: now, or at the end of the running step.
func (m *screen) jump(to int) tea.Cmd {
	j := op.JumpRequested{To: to} // without a reason: the cards must not quote an invented one
	ctx, s := m.ctx, m.s
	if m.running {
		m.say(fmt.Sprintf("jumps to step %d when the present step is complete", to))
		return func() tea.Msg { return failed(s.Jump(ctx, j)) }
	}
	m.activity, m.begun = "jumping", m.now
	if s == nil {
		m.opening = true
		svc, task, c := m.o.Service, m.o.Task, m.client()
		c.Started = nil
		return func() tea.Msg {
			res, err := svc.Jump(ctx, task, j, c)
			for _, w := range res.Warnings {
				c.Note(w)
			}
			return doneMsg{err: err}
		}
	}
	m.running = true
	m.turn = turn{from: to, usage: m.st.Totals.Usage, cards: m.st.Totals.CardsWritten}
	runCtx, cancel := context.WithCancel(ctx)
	m.cancel = cancel
	return m.turns.running(func() tea.Msg {
		if err := s.Jump(runCtx, j); err != nil {
			return turnMsg{err: err}
		}
		out, err := s.Run(runCtx)
		return turnMsg{out, err}
	})
}

// doneMsg is the result of a command that runs outside a turn.
type doneMsg struct {
	text string // to print; may be empty
	err  error
}

func failed(err error) tea.Msg {
	if err == nil {
		return nil
	}
	return errorMsg{err}
}
