//go:build unix

package tui

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/show"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/cmd/internal/tui/report"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/skill"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/search"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/spelling"
)

const (
	maxPrintedLines = 400 // that a command prints
	maxAbout        = 200 // of the description of a user's command
)

type verb struct {
	name, args, about string
	idle              int // with this many words it waits until the agent has answered; 0: never
	run               func(m *screen, args []string) tea.Cmd
}

func verbs() []verb {
	return []verb{
		{"/jump", "[STEP [--git]]",
			"go back, or over, to a step, with --git in git, too: shows the plan, then asks", 0, (*screen).jumpVerb},
		{"/undo", "", "go back to before the last change to files; the steps stay reachable", 0, (*screen).undoVerb},
		{"/timeline", "", "operations and the tree of steps", 0, (*screen).timelineVerb},
		{"/diff", "[A [B]]", "what changed from step A (default: 0) to step B (default: now)", 0, (*screen).diffVerb},
		{"/blame", "FILE[:LINE]", "what wrote each line of a file, or all about one line", 0, (*screen).blameVerb},
		{"/search", "WORDS", "what all tasks said, did and met about this", 0, (*screen).searchVerb},
		{"/out", "[STEP | JOB]",
			"the output of a step's commands (default: of the last one), or of a background job", 0, (*screen).outVerb},
		{"/jobs", "[stop ID]", "background commands and subagents, or end one", 0, (*screen).jobsVerb},
		{"/thoughts", "[STEP]", "what the model thought in the last turn, or at a step", 0, (*screen).thoughtsVerb},
		{"/todo", "", "the agent's todo list", 0, (*screen).todoVerb},
		{"/cards", "", "knowledge cards that were recalled and written", 0, (*screen).cardsVerb},
		{"/why", "[STEP]", "what the model sees at a step, and what was compacted or masked", 0, (*screen).whyVerb},
		{"/context", "[STEP]", "the same as /why", 0, (*screen).whyVerb},
		{"/cost", "", "tokens and dollars so far", 0, (*screen).costVerb},
		{"/compact", "", "compact all steps but the newest into a block and cards now", 1, (*screen).compactVerb},
		{"/model", "[NAME]", "show the model, or change it from the next request on", 2, (*screen).modelVerb},
		{"/approval", "[MODE]", "show or set which calls ask first: ask, edits, auto, deny", 0, (*screen).approvalVerb},
		{"/plan", "", "begin or end plan mode: the agent only reads and asks, and makes a plan (Shift-Tab)", 0,
			func(m *screen, _ []string) tea.Cmd { return m.setMode(m.approval(), !m.planning()) }},
		{"/until", "[CMD | off]", "show, set or end the check that says when the task is done", 2, (*screen).untilVerb},
		{"/paste", "", "put the image of the clipboard into the message, as Ctrl-V does", 0, (*screen).pasteVerb},
		{"/resume", "", "pick another task of this directory", 1,
			func(m *screen, _ []string) tea.Cmd { return m.pickTask() }},
		{"/new", "", "start a new task with the next request", 1, (*screen).newVerb},
		{"/clear", "", "the same as /new", 1, (*screen).newVerb},
		{"/help", "", "this list", 0, (*screen).helpVerb},
		{"/quit", "", "leave; 'anamnesis -c' continues the task", 0,
			func(m *screen, _ []string) tea.Cmd { return m.askToLeave() }},
	}
}

// offered lists the commands to complete: the program's, then those of the user and the project.
func offered(skills []skill.Skill) (out []editor.Verb) {
	for _, v := range verbs() {
		out = append(out, editor.Verb{Name: v.name, About: v.about})
	}
	for _, k := range skills {
		if k.Err == nil {
			out = append(out, editor.Verb{Name: "/" + k.Name,
				About: strings.TrimSpace(k.Hint + " " + quote.CutBytes(k.Description, maxAbout))})
		}
	}
	return out
}

// command runs a slash command, which may be named by a unique prefix.
func (m *screen) command(line string) tea.Cmd {
	words := strings.Fields(line)
	var fits []verb
	var names, could []string
	for _, v := range verbs() {
		if v.name == words[0] {
			fits = []verb{v}
			break
		}
		names = append(names, v.name)
		if strings.HasPrefix(v.name, words[0]) {
			fits, could = append(fits, v), append(could, v.name)
		}
	}
	// A whole name is the program's command. Before a prefix counts, a skill or a command of the user's does.
	if len(fits) != 1 || fits[0].name != words[0] {
		k, _ := skill.Typed(m.o.Service.Skills(m.o.Request.Dir), line)
		if k != nil || strings.Contains(words[0], ":") { // or a prompt of an MCP server
			return m.ask(line)
		}
	}
	if len(fits) != 1 {
		text := fmt.Sprintf("%s is not a command", clean(words[0]))
		if len(fits) > 1 {
			text = clean(words[0]) + " could be " + strings.Join(could, ", ")
		} else if near := spelling.Nearest(words[0], names); near != "" {
			text += "; did you mean " + near + "?"
		}
		if m.unknown == line {
			return m.ask(" " + line)
		}
		m.unknown = line
		m.edit.Set(line)
		m.edit.Dismiss()
		m.print(paint.Yellow.Render("! ") + text +
			paint.Faint.Render(" · Enter again sends it as text · /help lists the commands"))
		return nil
	}
	v := fits[0]
	if v.idle > 0 && len(words) >= v.idle && (m.running || m.opening) {
		m.print(paint.Yellow.Render("! ") + v.name + " waits until the agent has answered; Esc interrupts it")
		m.edit.Set(line)
		return nil
	}
	m.print("")
	m.print(paint.Faint.Render(line))
	if v.name == "/until" && len(words) > 1 { // a command line, as it was typed
		words = []string{v.name, strings.TrimSpace(strings.TrimPrefix(line, words[0]))}
	}
	return v.run(m, words[1:])
}

func (m *screen) helpVerb([]string) tea.Cmd {
	const column = 20
	row := func(name, about string) {
		for i, l := range paint.Wrap(about, max(m.width-column, 16)) {
			if i > 0 {
				name = ""
			}
			m.print(paint.Bold.Render(fmt.Sprintf("  %-*s", column-2, name)) + l)
		}
	}
	for _, v := range verbs() {
		row(v.name+" "+v.args, v.about)
	}
	row("@file", "completes a file's name (Tab)")
	row("!command", "runs a command as you; its output is sent with your next message")
	row("Ctrl-R", "searches earlier messages: type a part, Ctrl-R again goes on, Enter sends, Esc edits")
	row("Enter", "sends; while the agent works it queues (↑ takes it back)")
	row("Alt-Enter, Ctrl-J", `new line, as does a \ at the end`)
	row("Shift-Tab", "changes the mode: ask, edits, plan")
	row("Esc", "interrupts; twice, when idle, picks a step to jump to")
	row("Ctrl-C", "interrupts, clears the line, leaves")
	return nil
}

func (m *screen) jumpVerb(args []string) tea.Cmd {
	if len(args) == 0 {
		return m.pickStep()
	}
	to, err := strconv.Atoi(args[0])
	git := slices.Contains(args[1:], "--git")
	if err != nil || m.o.Task == "" || len(args) > 2 || len(args) == 2 && !git {
		m.fail(fmt.Errorf("/jump %s: want the number of a step, and --git to move git, too; /jump alone shows a list",
			strings.Join(args, " ")))
		return nil
	}
	return m.planJump(to, git)
}

func (m *screen) undoVerb([]string) tea.Cmd {
	if m.st.Current == 0 {
		m.say("the task is at its beginning")
		return nil
	}
	svc, task, plan := m.o.Service, m.o.Task, m.planJump
	return func() tea.Msg {
		b := new(timeline.Builder)
		if err := svc.Ops(task, 0, b.Add); err != nil {
			return errorMsg{err}
		}
		step, ok := beforeChange(b)
		if !ok {
			return errorMsg{errors.New("/undo: no step on this path changed a file; /jump goes back to any step")}
		}
		return plan(step, false)()
	}
}

// beforeChange returns the step before the last one on the present path that changed a file;
// false if none did.
func beforeChange(b *timeline.Builder) (int, bool) {
	for _, r := range slices.Backward(b.Timeline().Rows) {
		if r.Kind == timeline.RowStep && r.OnPath && r.Changed > 0 && r.Step > 0 {
			return r.Parent, true
		}
	}
	return 0, false
}

// withTask reads the task in the background and prints the result.
func (m *screen) withTask(read func() (string, error)) tea.Cmd {
	if m.o.Task == "" {
		m.print(paint.Faint.Render("no task yet"))
		return nil
	}
	return m.inBackground(read)
}

// inBackground prints what read returns.
func (m *screen) inBackground(read func() (string, error)) tea.Cmd {
	return func() tea.Msg {
		text, err := read()
		if err != nil {
			return errorMsg{err}
		}
		if lines := strings.Split(text, "\n"); len(lines) > maxPrintedLines {
			text = strings.Join(lines[:maxPrintedLines], "\n") +
				paint.Faint.Render(fmt.Sprintf("\n… %s", quote.Number(len(lines)-maxPrintedLines, "more line")))
		}
		return textMsg{text}
	}
}

func (m *screen) timelineVerb([]string) tea.Cmd {
	svc, task, width := m.o.Service, m.o.Task, m.width
	return m.withTask(func() (string, error) {
		b := new(timeline.Builder)
		err := svc.Ops(task, 0, b.Add)
		return term.Draw(b.Timeline(), width), err
	})
}

func (m *screen) diffVerb(args []string) tea.Cmd {
	steps := []int{0, m.st.Current}
	for i, a := range args[:min(2, len(args))] {
		n, err := strconv.Atoi(a)
		if err != nil {
			m.fail(fmt.Errorf("/diff %s: want the numbers of steps", a))
			return nil
		}
		steps[i] = n
	}
	ctx, svc, task := m.ctx, m.o.Service, m.o.Task
	return m.withTask(func() (string, error) { return report.Diff(ctx, svc, task, steps[0], steps[1]) })
}

func (m *screen) blameVerb(args []string) tea.Cmd {
	ctx, svc, dir, arg := m.ctx, m.o.Service, cmp.Or(m.info.Dir, m.o.Request.Dir), strings.Join(args, " ")
	if arg == "" {
		m.fail(errors.New("/blame: want FILE, FILE:LINE or FILE:LINE-LINE"))
		return nil
	}
	return m.inBackground(func() (string, error) {
		a, err := svc.Blame(ctx, dir, arg)
		if err != nil {
			return "", err
		}
		return strings.TrimSuffix(show.Blame(a), "\n"), nil
	})
}

func (m *screen) searchVerb(args []string) tea.Cmd {
	ctx, svc, task, width, q := m.ctx, m.o.Service, m.o.Task, m.width, search.Query{Words: strings.Join(args, " ")}
	return m.inBackground(func() (string, error) {
		found, err := search.Find(ctx, svc.Home, q, func(int, int) {})
		if err != nil {
			return "", fmt.Errorf("/search: %w", err)
		}
		return strings.Join(append(found.Notes, strings.TrimSuffix(show.Search(found, width, task), "\n")), "\n"), nil
	})
}

func (m *screen) outVerb(args []string) tea.Cmd {
	svc, task, step := m.o.Service, m.o.Task, -1
	if len(args) > 0 {
		if strings.HasPrefix(args[0], state.JobPrefix) {
			return m.jobOut(args[0])
		}
		var err error
		if step, err = strconv.Atoi(args[0]); err != nil || step < 0 {
			m.fail(fmt.Errorf("/out %s: want the number of a step, or a job such as bg_1", args[0]))
			return nil
		}
	}
	return m.withTask(func() (string, error) { return report.Out(svc, task, step) })
}

func (m *screen) todoVerb([]string) tea.Cmd {
	if len(m.st.Todos) == 0 {
		m.print(paint.Faint.Render("the agent keeps no todo list"))
		return nil
	}
	m.printTodos(m.st.Todos)
	return nil
}

// printTodos prints the agent's list, what is done faint and what is under way bold.
func (m *screen) printTodos(todos []op.Todo) {
	for _, t := range todos {
		mark, style := "☐", lipgloss.NewStyle()
		switch t.Status {
		case op.TodoDone:
			mark, style = "☑", paint.Faint
		case op.TodoInProgress:
			mark, style = "▸", paint.Bold
		}
		m.print("  " + mark + " " + style.Render(clean(strings.Join(strings.Fields(t.Title), " "))))
	}
}

// thoughtsVerb prints the reasoning of a step's reply, or of all replies since the last request.
func (m *screen) thoughtsVerb(args []string) tea.Cmd {
	svc, task, step := m.o.Service, m.o.Task, -1
	if n, err := strconv.Atoi(strings.Join(args, "")); err == nil && n >= 0 {
		step = n
	} else if len(args) > 0 {
		m.fail(fmt.Errorf("/thoughts %s: want the number of a step", args[0]))
		return nil
	}
	return m.withTask(func() (string, error) { return report.Thoughts(svc, task, step) })
}

func (m *screen) cardsVerb([]string) tea.Cmd {
	svc, task := m.o.Service, m.o.Task
	return m.withTask(func() (string, error) { return report.Cards(svc, task) })
}

func (m *screen) whyVerb(args []string) tea.Cmd {
	svc, task, seq, width := m.o.Service, m.o.Task, m.st.Last, m.width
	if len(args) > 0 {
		n, err := strconv.Atoi(args[0])
		if err != nil || n < 0 || n >= m.st.Steps.Len() {
			m.fail(fmt.Errorf("/why %s: valid steps are %s", args[0], m.st.Steps.Valid()))
			return nil
		}
		seq = m.st.Steps.At(n).Last
	}
	return m.withTask(func() (string, error) {
		x, _, err := svc.Explain(task, seq)
		if err != nil {
			return "", err
		}
		var text strings.Builder
		(&show.Printer{Out: &text, Err: &text, Width: width}).Explanation(x)
		return strings.TrimRight(text.String(), "\n"), nil
	})
}

func (m *screen) costVerb([]string) tea.Cmd {
	u := m.st.Totals.Usage
	m.print(fmt.Sprintf("%s tokens sent (%s cached), %s received in %s", paint.Count(u.Prompt), paint.Count(u.Cached),
		paint.Count(u.Completion), quote.Number(m.st.Totals.Replies, "reply")))
	m.print(show.Cost(u))
	return nil
}

func (m *screen) modelVerb(args []string) tea.Cmd {
	if len(args) == 0 {
		now := cmp.Or(m.info.Model, m.o.Request.Model, m.o.Request.Default.Model)
		m.print("model " + paint.Bold.Render(term.ModelName(now)) + paint.Faint.Render(" · /model NAME changes it"))
		return nil
	}
	if _, err := m.o.Service.ChooseModel(m.ctx, args[0], m.o.Request.BaseURL, ""); err != nil {
		m.fail(err)
		return nil
	}
	m.o.Request.Model, m.o.Settings.Model = args[0], args[0]
	m.info.Model = args[0]
	m.print("model " + paint.Bold.Render(clean(args[0])) + paint.Faint.Render(" from the next request on"))
	return m.reopen()
}

func (m *screen) approvalVerb(args []string) tea.Cmd {
	if len(args) == 0 {
		m.print("approval " + paint.Bold.Render(m.approval()) +
			paint.Faint.Render(" · /approval ask, edits, auto or deny"))
		return nil
	}
	mode, err := approval.ParseMode(args[0])
	if err != nil {
		m.fail(err)
		return nil
	}
	return m.setMode(string(mode), m.planning())
}

// untilVerb shows or changes what the task is to reach.
func (m *screen) untilVerb(args []string) tea.Cmd {
	goal := m.st.Goal
	if given := m.o.Settings.Goal; given != nil && !given.Equal(goal.Goal) {
		goal = state.Goal{Goal: *given} // from the next request on
	}
	switch {
	case len(args) == 0 && len(goal.Until) == 0:
		m.print(paint.Faint.Render("the agent alone says when it is done · /until CMD sets a check, such as /until " +
			"go test ./..."))
		return nil
	case len(args) == 0:
		line, text := goal.Curve()
		m.print("done when " + paint.Bold.Render(clean(strings.Join(goal.Until, ", then "))) + " ends with 0" +
			paint.Faint.Render(" · /until off ends that"))
		m.print(clean(strings.TrimSpace(line + " " + text)))
		return nil
	case args[0] == "off":
		goal.Goal = op.Goal{}
		m.print("no check" + paint.Faint.Render(" from the next request on"))
	default:
		goal.Until = []string{args[0]}
		m.print("done when " + paint.Bold.Render(clean(args[0])) + " ends with 0" +
			paint.Faint.Render(" · from the next request on"))
	}
	m.o.Request.Goal, m.o.Settings.Goal = &goal.Goal, &goal.Goal
	return m.reopen()
}

// reopen closes the session; the next request opens it with the settings as they are.
func (m *screen) reopen() tea.Cmd {
	cmd := m.close()
	m.s = nil
	return cmd
}

func (m *screen) newVerb([]string) tea.Cmd {
	cmd := m.reopen()
	m.o.Task, m.info = "", session.Info{}
	m.setState(new(state.State))
	m.print(paint.Faint.Render("the next request starts a new task"))
	return cmd
}

// changes finds the files that the steps since the last request changed, as far as no jump has
// left them.
func (m *screen) changes() tea.Cmd {
	svc, task, after, last := m.o.Service, m.o.Task, m.turn.after, m.st.Last
	path := m.st.Steps.PathSet(m.st.Current)
	took := m.now.Sub(m.begun)
	return func() tea.Msg {
		msg := stepsMsg{took: took}
		err := svc.Ops(task, after, func(o op.Op) error {
			switch b := o.Body.(type) {
			case *op.UserSaid:
				if b.Source == op.SourceRequest && o.Seq <= last {
					msg = stepsMsg{took: took}
				}
			case *op.WorldSaved:
				if 0 < o.Step && o.Step < len(path) && path[o.Step] {
					msg.names = append(msg.names, b.Changed...)
					msg.changed = max(msg.changed, b.NChanged)
				}
			}
			return nil
		})
		if err != nil {
			return errorMsg{err}
		}
		slices.Sort(msg.names)
		msg.names = slices.Compact(msg.names)
		msg.changed = max(msg.changed, len(msg.names))
		return msg
	}
}
