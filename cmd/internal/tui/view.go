//go:build unix

package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/state"
)

// spinner moves while something runs.
const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// View draws what is below the scrollback: what runs, the question, the line, and the
// status.
func (m *screen) View() tea.View {
	var v tea.View
	if m.leaving && !m.running && !m.opening {
		return v
	}
	lines := m.working()
	var cursor *tea.Cursor
	add := func(more []string, c *tea.Cursor) {
		if c != nil {
			cursor = tea.NewCursor(c.X, c.Y+len(lines))
		}
		lines = append(lines, more...)
	}
	switch q := m.question(); {
	case q != nil:
		more, c := q.view(m.width, m.tall, m.now)
		add(more, c)
		if !m.edit.empty() {
			add([]string{faint.Render(cut("you were typing: "+oneLine(clean(m.edit.area.Value())), m.width))}, nil)
		}
	case m.pick != nil:
		add(m.pick.view(m.width, m.tall), nil)
	default:
		add(m.queued(), nil)
		rule := faint.Render(strings.Repeat("─", m.width))
		add([]string{rule}, nil)
		text, c := m.edit.view(m.width)
		add(strings.Split(text, "\n"), c)
		add([]string{rule}, nil)
	}
	add([]string{m.status()}, nil)
	if over := len(lines) - m.tall; over > 0 { // the end counts
		lines = lines[over:]
		if cursor != nil {
			cursor.Y -= over
		}
	}
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(cut(l, m.width))
	}
	v.SetContent(b.String())
	v.Cursor = cursor
	return v
}

// working shows the reply on its way and the calls that run.
func (m *screen) working() []string {
	var lines []string
	if strings.TrimSpace(m.reply.text) != "" {
		m.md.fit(m.width, m.theme)
		lines = m.md.render(m.reply.text)
		if m.reply.streamed {
			lines = append([]string{""}, lines...)
		}
		lines = lines[max(0, len(lines)-max(3, m.tall/2)):]
	}
	frames := []rune(spinner)
	frame := string(frames[int(m.now.Sub(m.begun)/tickEvery)%len(frames)])
	busy := false
	for _, c := range m.calls {
		if c.begun.IsZero() || m.question() != nil {
			continue
		}
		busy = true
		since := fmt.Sprintf("  %d s", int(m.now.Sub(c.begun).Seconds()))
		lines = append(lines, cut(yellow.Render(frame)+" "+callText(c.Call, m.info.Dir), m.width-len(since))+faint.Render(since))
		whole := m.feed.tail(c.ID)
		whole = whole[:strings.LastIndexByte(whole, '\n')+1] // without a line on its way
		tail := strings.Split(strings.TrimRight(clean(whole), "\n"), "\n")
		if c.progress != "" {
			tail = append(tail, clean(c.progress))
		}
		for _, l := range tail[max(0, len(tail)-liveLines):] {
			if l != "" {
				lines = append(lines, faint.Render("  │ ")+cut(strings.ReplaceAll(l, "\t", "    "), m.width-4))
			}
		}
	}
	if (m.running || m.opening) && !busy && m.question() == nil {
		what := m.activity
		if what == "" {
			what = "thinking"
		}
		if t := oneLine(clean(m.reply.thinking)); t != "" {
			what += ": " + t[max(0, len(t)-200):]
		}
		lines = append(lines, cut(yellow.Render(frame)+" "+what, m.width-20)+faint.Render(fmt.Sprintf("  %d s · Esc interrupts", int(m.now.Sub(m.begun).Seconds()))))
	}
	return lines
}

// queued shows the messages that wait.
func (m *screen) queued() []string {
	var lines []string
	for i, text := range m.queue {
		how := ""
		if i == len(m.queue)-1 {
			how = "  (↑ edits it)"
		}
		lines = append(lines, faint.Render(cut("queued: "+oneLine(clean(text)), m.width-len(how)))+faint.Render(how))
	}
	return lines
}

// status is the last line.
func (m *screen) status() string {
	if m.hint != "" && m.now.Sub(m.hinted) < hintFor {
		return yellow.Render(cut(m.hint, m.width))
	}
	if m.info.Task == "" {
		return faint.Render(cut("/help · @file · !command · Ctrl-C twice leaves", m.width))
	}
	parts := []string{modelName(m.info.Model), m.approval()}
	tokens := m.st.ContextTokens()
	if m.st.EAS > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s EAS", count(tokens), count(m.st.EAS)))
	}
	if m.st.Window > 0 && m.width > 60 {
		parts[len(parts)-1] += fmt.Sprintf(" (window %s)", count(m.st.Window))
	}
	if usd := m.st.Totals.Usage.USD; usd > 0 {
		parts = append(parts, state.Dollars(usd))
	}
	parts = append(parts, fmt.Sprintf("step %d", m.st.Current))
	if n := m.st.Totals.Jumps; n > 0 {
		parts = append(parts, plural(n, "jump"))
	}
	return faint.Render(cut(strings.Join(parts, " · "), m.width))
}

func (m *screen) approval() string {
	if m.st.Approval != "" && m.st.Approval != m.st.Opened.Approval {
		return m.st.Approval // the user allowed everything since
	}
	return m.info.Approval
}

// modelName is a model's name in short.
func modelName(name string) string {
	if path, ok := strings.CutPrefix(name, "script:"); ok {
		return "script:" + filepath.Base(path)
	}
	return clean(name)
}

// greet introduces the program before there is a task.
func (m *screen) greet() {
	m.print(bold.Render("anamnesis "+m.o.Version) + faint.Render(" · "+shortDir(m.o.Request.Dir)))
	m.print(faint.Render("Type a request. /help lists commands, Esc interrupts, Esc twice jumps back."))
}

// heading says what runs, before the first answer.
func (m *screen) heading() {
	if m.info.Banner != "" { // it names the recording by its whole path
		path, _ := strings.CutPrefix(m.info.Model, "script:")
		m.print(faint.Render(clean(strings.ReplaceAll(m.info.Banner, path, filepath.Base(path)))))
	}
	for _, w := range m.info.Warnings {
		m.print(yellow.Render("! " + clean(w)))
	}
	text := fmt.Sprintf("task %s · %s · EAS %d · approval %s · %s", m.info.Task, modelName(m.info.Model), m.info.EAS, m.info.Approval, shortDir(m.info.Dir))
	m.print(faint.Render(text))
	if !m.fresh {
		m.print(faint.Render("went on at step " + fmt.Sprint(m.st.Current) + ": " + cut(oneLine(clean(m.st.Request)), m.width-30)))
	}
}

// outcome shows how a turn ended.
func (m *screen) outcome(msg turnMsg) {
	switch {
	case msg.err != nil:
		m.fail(msg.err)
	case msg.out.Reason == "interrupted":
		m.print(yellow.Render("interrupted") + faint.Render(" · everything so far is recorded; say what is next"))
	case msg.out.Reason != "done" && msg.out.Reason != "idle":
		text := msg.out.Reason
		if msg.out.Err != nil {
			text += ": " + msg.out.Err.Error()
		} else if msg.out.Detail != "" {
			text += ": " + msg.out.Detail
		}
		m.print(red.Render(clean(text)))
	}
	if n := len(msg.out.Learned); n > 0 {
		m.print(cyan.Render(fmt.Sprintf("✦ %s written: %s", plural(n, "card"), strings.Join(msg.out.Learned, ", "))))
	}
}

// summary closes a turn: what it changed, tested, cost and wrote.
func (m *screen) summary(s stepsMsg) {
	var parts []string
	if s.changed > 0 {
		names := strings.Join(s.names, ", ")
		if more := s.changed - len(s.names); more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		parts = append(parts, fmt.Sprintf("%s changed: %s", plural(s.changed, "file"), clean(names)))
	}
	parts = append(parts, m.turn.tests...)
	u, was := m.st.Totals.Usage, m.turn.usage
	if n := u.Tokens() - was.Tokens(); n > 0 {
		parts = append(parts, count(n)+" tokens")
	}
	if usd := u.USD - was.USD; usd > 0 {
		parts = append(parts, state.Dollars(usd))
	}
	if n := m.st.Totals.CardsWritten - m.turn.cards; n > 0 {
		parts = append(parts, plural(n, "card"))
	}
	if d := s.took.Round(time.Second); d >= time.Second {
		parts = append(parts, d.String())
	}
	m.print("")
	if len(parts) > 0 {
		m.print(faint.Render("── " + strings.Join(slices.Compact(parts), " · ")))
	}
}

// shortDir is a directory with the user's home as a tilde.
func shortDir(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	if home, err := os.UserHomeDir(); err == nil && home != "/" && (dir == home || strings.HasPrefix(dir, home+"/")) {
		dir = "~" + dir[len(home):]
	}
	return clean(dir)
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

func todoLines(todos []op.Todo) []string {
	var out []string
	for _, t := range todos {
		out = append(out, "  "+clean(t.String()))
	}
	return out
}
