//go:build unix

package tui

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/show"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

const (
	maxNamed     = 8  // paths
	maxPlanLines = 16 // of what a jump would do
)

// maxReplayed is how many operations of the last turn are shown again.
const maxReplayed = 400

// picker is a list of which the user picks one.
type picker struct {
	title  string
	rows   []pickRow
	at     int
	yesNo  bool // y takes the first row, n the second
	leaves bool // the first row leaves
	words  bool // a line that is typed answers, too
	then   func(*screen, pickRow) tea.Cmd
}

type pickRow struct {
	text string
	id   string // of a task
	step int
	more string // shown below the list while the row is chosen
}

type (
	pickedMsg struct{ pick *picker }
	planMsg   struct {
		plan inspect.JumpPlan
		err  error
	}
	stepsMsg struct { // what a turn changed
		changed int      // files, or more if names lacks some
		names   []string // sorted
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
	lines = append([]string{paint.Faint.Render(strings.Repeat("─", width))},
		paint.Wrap(paint.Bold.Render(p.title), width)...)
	var end []string
	if more := p.rows[p.at].more; more != "" {
		text := paint.Wrap(more, width-2)
		for _, l := range text[:min(len(text), 2)] {
			end = append(end, "  "+l)
		}
	}
	end = append(end, paint.Flow([]string{fmt.Sprintf("%d of %d", p.at+1, len(p.rows)), "↑↓ choose", "Enter takes it",
		"Esc goes back"}, width)...)
	n := max(3, min(15, height-len(lines)-len(end)-3))
	first := max(0, min(p.at-n/2, len(p.rows)-n))
	for i, r := range p.rows[first:min(first+n, len(p.rows))] {
		mark, style := "  ", paint.Faint
		if first+i == p.at {
			mark, style, cursor = "❯ ", paint.Bold, tea.NewCursor(0, len(lines))
		}
		lines = append(lines, paint.Cut(style.Render(mark+r.text), width))
	}
	for _, l := range end {
		lines = append(lines, paint.Faint.Render(l))
	}
	return lines, cursor
}

// pickTask lists the directory's tasks, the last one first.
func (m *screen) pickTask() tea.Cmd {
	svc, dir, here := m.o.Service, m.o.Request.Dir, m.o.Task
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
		p := &picker{title: "Tasks of this directory",
			then: func(m *screen, r pickRow) tea.Cmd {
				if m.o.Task != "" { // it was meant for another one
					m.o.Settings.Plan = nil
				}
				return m.switchTo(r.id)
			}}
		for _, r := range slices.Backward(rows) {
			request, more := oneLine(clean(r.Title())), quote.Number(r.Steps, "step")
			if r.Request != r.First {
				more += " · latest request: " + oneLine(clean(taskdir.Title(r.Request)))
			}
			if r.ID == here {
				r.State = "this task"
			}
			p.rows = append(p.rows, pickRow{id: r.ID, more: more, text: fmt.Sprintf("%s  %-11s  %s",
				r.Changed.Local().Format("01-02 15:04"), r.State, request)})
		}
		if len(p.rows) == 0 {
			return textMsg{paint.Faint.Render("no task has worked in this directory yet")}
		}
		return pickedMsg{p}
	}
}

// waits reports whether a request comes next in the task to continue.
func (m *screen) waits() bool {
	st, err := m.o.Service.State(m.o.Task)
	return err == nil && st.Waits()
}

// switchTo selects the task that the next request continues.
func (m *screen) switchTo(task string) tea.Cmd {
	closing := m.close()
	m.s = nil
	m.o.Task = task
	m.print("task " + paint.Bold.Render(task) + paint.Faint.Render(": the next request continues it"))
	if st, err := m.o.Service.State(task); err == nil {
		m.o.Request.Goal, m.o.Settings.Goal = nil, nil // it was meant for another task
		m.setState(st)
		m.info = session.Info{Task: task, Dir: st.Opened.Dir, Model: cmp.Or(m.o.Settings.Model,
			st.Model.Name), EAS: st.Model.EAS, EASFrom: st.Opened.EASFrom,
			Approval: cmp.Or(m.o.Settings.Approval, st.Grants.Mode)}
		m.replay()
		if end := st.Turn.End; m.planning() && st.Waits() && end != nil && end.Reason == "done" {
			m.plan = st.Said.Answer
			m.proposePlan()
		}
	}
	return closing
}

// replay shows the last turn of the task as it was shown then, but for the lines of edits.
func (m *screen) replay() {
	first := max(m.st.Last, maxReplayed) - maxReplayed
	var ops []op.Op
	err := m.o.Service.Ops(m.o.Task, first, func(o op.Op) error {
		if b, ok := o.Body.(*op.UserSaid); ok && b.Source == op.SourceRequest {
			first, ops = 0, nil // the turn's beginning is within the limit
		}
		ops = append(ops, o)
		return nil
	})
	if err != nil {
		m.fail(err)
	}
	if first > 0 {
		m.print(paint.Faint.Render("… /timeline lists what came before"))
	}
	m.words.reset(m.info.Dir)
	for _, o := range ops {
		if b, ok := o.Body.(*op.UserSaid); ok && b.Source == op.SourceRequest {
			m.printRequest(editor.Typed(b.Text))
		}
		m.apply(o)
	}
	m.calls, m.turn, m.activity = nil, turn{}, ""
	if end := m.st.Turn.End; end != nil && m.st.Waits() {
		m.outcome(turnMsg{out: runtime.Outcome{Reason: end.Reason, Detail: end.Detail, Limit: end.Limit}})
	}
}

// pickStep shows the tree of steps to jump to, the current path's newest first, each with what
// was done in it.
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
		p := &picker{title: "Jump to the end of a step: files go back, memory stays",
			then: func(m *screen, r pickRow) tea.Cmd { return m.planJump(r.step, false) }}
		ended := make(map[int]timeline.Row)
		for _, r := range b.Timeline().Rows {
			if r.Kind == timeline.RowStep {
				ended[r.Step] = r
			}
		}
		tree := b.Tree()
		for _, n := range slices.Backward(tree.Nodes) {
			r, ok := ended[n.Step]
			if !ok {
				continue
			}
			what := ""
			if r.Changed > 0 && n.Step > 0 {
				what = quote.Number(r.Changed, "file")
			}
			// The step before the current one is where most jumps go.
			if n.Step == b.State().Steps.At(b.State().Current).Parent {
				p.at = len(p.rows)
			}
			begins := n.ParentRow >= 0 && tree.Nodes[n.ParentRow].Lane < n.Lane
			p.rows = append(p.rows, pickRow{step: n.Step, text: fmt.Sprintf("%-*s %-3d %-8s %s", 2*min(tree.Lanes, 4)-1,
				glyph(n, begins), n.Step, what, oneLine(clean(r.Text))), more: about(n, r)})
		}
		if len(p.rows) == 0 {
			return textMsg{paint.Faint.Render("no step has ended yet")}
		}
		return pickedMsg{p}
	}
}

// glyph draws a step in its lane. begins: it is the first step of a branch.
func glyph(n timeline.Node, begins bool) string {
	mark := "○"
	switch {
	case n.Current:
		mark = "◉"
	case n.OnPath:
		mark = "●"
	}
	if begins {
		return strings.Repeat("│ ", n.Lane-1) + "├─" + mark
	}
	return strings.Repeat("│ ", n.Lane) + mark
}

// about says where a step is, and names the files that it changed.
func about(n timeline.Node, r timeline.Row) string {
	text := "changed " + named(r.Paths, r.Changed)
	if r.Changed == 0 {
		text = "changed no file"
	}
	switch {
	case n.Step == 0:
		text = "the files as they were before the first change"
	case n.Current:
		text += " · the task is here"
	case !n.OnPath:
		text += " · left" + strings.TrimSuffix(": "+oneLine(clean(n.LeftBy)), ": ")
	}
	return text
}

func named(paths []string, n int) string {
	paths = paths[:min(len(paths), maxNamed)]
	text := clean(strings.Join(paths, ", "))
	if n > len(paths) {
		text += fmt.Sprintf(" and %d more", n-len(paths))
	}
	return text
}

// planJump asks what a jump would do.
func (m *screen) planJump(to int, git bool) tea.Cmd {
	ctx, svc, task := m.ctx, m.o.Service, m.o.Task
	return func() tea.Msg {
		plan, err := svc.PlanJump(ctx, task, "", op.JumpRequested{To: to, Git: git})
		return planMsg{plan, err}
	}
}

// confirmJump shows what a jump would do and asks whether to make it.
func (m *screen) confirmJump(msg planMsg) {
	if msg.err != nil {
		m.fail(msg.err)
		return
	}
	p := msg.plan
	var text bytes.Buffer
	(&show.Printer{Out: &text, Err: &text, Width: m.width}).JumpPlan(m.o.Task, p)
	lines := strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
	m.print(paint.Yellow.Render("↩ " + clean(lines[0])))
	lines = lines[1:]
	for _, line := range lines[:min(len(lines), maxPlanLines)] {
		m.print("  " + clean(line))
	}
	if more := len(lines) - maxPlanLines; more > 0 {
		m.print("  and " + quote.Number(more, "more line"))
	}
	m.pick = &picker{title: fmt.Sprintf("Jump to step %d?", p.To), yesNo: true,
		rows: []pickRow{{text: "Yes, jump", step: 1}, {text: "No, stay"}}, then: func(m *screen, r pickRow) tea.Cmd {
			if r.step == 0 {
				return nil
			}
			return m.jump(p.To, len(p.Git) > 0)
		}}
}

// jump jumps to a step: now, or at the end of the running step.
func (m *screen) jump(to int, git bool) tea.Cmd {
	j := op.JumpRequested{To: to, Git: git} // without a reason: the cards must not quote an invented one
	ctx, s := m.ctx, m.reclaim()
	if m.running {
		m.say(fmt.Sprintf("jumps to step %d when the present step is complete", to))
		return func() tea.Msg {
			if err := s.Jump(ctx, j); err != nil {
				return errorMsg{err}
			}
			return nil
		}
	}
	m.activity, m.begun = "jumping", m.now
	if s == nil {
		m.opening = true
		svc, task, c := m.o.Service, m.o.Task, m.client()
		c.Started = nil // the jump begins no turn, so the screen keeps its heading and figures
		return func() tea.Msg {
			res, err := svc.Jump(ctx, task, "", j, c)
			for _, w := range res.Warnings {
				c.Note(w)
			}
			return doneMsg{err: err}
		}
	}
	return m.nextTurn(func(ctx context.Context) error { return s.Jump(ctx, j) })
}

// doneMsg is the result of a command that runs outside a turn.
type doneMsg struct {
	text string // to print; may be empty
	err  error
}
