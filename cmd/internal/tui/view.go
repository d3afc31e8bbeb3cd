//go:build unix

package tui

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/cmd/internal/tui/result"
	"anamnesis/orchestrator/guard/approval"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// spinner are the frames shown while something runs.
const spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

// View draws the lines below the scrollback: the running calls, the question or the line,
// and the status.
func (m *screen) View() tea.View {
	var v tea.View
	if m.leaving && !m.running && !m.opening {
		m.frame.View(nil, tea.Position{})
		return v
	}
	lines := m.working()
	var cursor *tea.Cursor
	add := func(more []string, c *tea.Cursor) {
		if c != nil {
			cursor = tea.NewCursor(min(c.X, m.width-1), c.Y+len(lines)) // further right, the renderer wraps it
		}
		lines = append(lines, more...)
	}
	switch q := m.question(); {
	case q != nil:
		q.Draft, q.Waiting = !m.edit.Empty(), m.held != nil
		add(q.View(m.width, m.tall, m.now))
	case m.pick != nil:
		add(m.pick.view(m.width, m.tall))
	default:
		add(m.queued(), nil)
		rule := paint.Faint.Render(strings.Repeat("─", m.width))
		add([]string{rule}, nil)
		text, c := m.edit.View(m.width)
		add(strings.Split(text, "\n"), c)
		add([]string{rule}, nil)
	}
	below := m.status()
	if m.question() != nil || m.pick != nil { // its keys are shown, however small the terminal
		below = append(m.beside(), below...)
		below = below[:min(len(below), max(0, m.tall-1-len(lines)))]
	}
	add(below, nil)
	if over := len(lines) - m.tall + 1; over > 0 { // keep the end, and one row free for printing
		lines = lines[over:]
		if cursor != nil {
			cursor.Y -= over
		}
	}
	width := m.width
	if m.now.Sub(m.sized) < sizeFor { // a terminal that becomes narrower still must not wrap them
		width = min(width, 20)
	}
	for i, l := range lines {
		lines[i] = paint.Cut(l, width)
	}
	text := strings.Join(lines, "\n")
	if m.nudged && lipgloss.Width(lines[len(lines)-1]) < width {
		text += "\u00a0"
	}
	v.SetContent(text)
	if v.Cursor = cursor; cursor != nil {
		m.frame.View(lines, cursor.Position)
	}
	return v
}

// working returns the lines of the reply being received and of the running calls.
func (m *screen) working() []string {
	var lines []string
	if strings.TrimSpace(m.reply.text) != "" {
		lines = m.markdown(m.reply.text)
		if !m.blank {
			lines = append([]string{""}, lines...)
		}
		lines = lines[max(0, len(lines)-max(3, m.tall/2)):]
	}
	frames := []rune(spinner)
	frame := string(frames[int(m.now.Sub(m.begun)/tickEvery)%len(frames)])
	busy := false
	for i, c := range slices.Concat(m.calls, m.mine) {
		if c.begun.IsZero() || m.question() != nil {
			continue
		}
		since := fmt.Sprintf("  %d s", int(m.now.Sub(c.begun).Seconds()))
		if i < len(m.calls) {
			busy = true
		} else {
			since += " · Esc ends it"
		}
		lines = append(lines, paint.Cut(paint.Yellow.Render(frame)+" "+result.Call(c.Call, m.info.Dir),
			m.width-len(since))+paint.Faint.Render(since))
		whole := m.feed.Tail(c.ID)
		if at := strings.LastIndexAny(whole, "\r\n"); at >= 0 && whole[at] == '\r' { // the last state may be incomplete
			whole = whole[:at]
		}
		tail := strings.Split(strings.TrimRight(term.Output(whole), "\n"), "\n")
		if c.progress != "" {
			tail = append(tail, clean(c.progress))
		}
		for _, l := range tail[max(0, len(tail)-liveLines):] {
			if l != "" {
				lines = append(lines, paint.Faint.Render("  │ ")+paint.Cut(strings.ReplaceAll(l,
					"\t", "    "), m.width-4))
			}
		}
	}
	if (m.running || m.opening) && !busy && m.question() == nil {
		what := cmp.Or(m.activity, "thinking")
		keys := "Esc interrupts"
		if left := m.outage(); left > 0 {
			what = fmt.Sprintf("waiting for the provider: asking again in %s, at %s", left,
				state.Clock(m.st.Outage.Until, m.now))
			keys = "Enter asks now · " + keys
		}
		if t := oneLine(clean(m.reply.thinking)); t != "" {
			what += ": " + t[max(0, len(t)-200):]
		}
		end := fmt.Sprintf("  %d s · %s", int(m.now.Sub(m.begun).Seconds()), keys)
		lines = append(lines, paint.Cut(paint.Yellow.Render(frame)+" "+what, m.width-len(end))+paint.Faint.Render(end))
	}
	return lines
}

// outage returns how long the provider is still waited for; 0: it is not.
func (m *screen) outage() time.Duration {
	if m.st == nil || m.st.Outage == nil {
		return 0
	}
	return max(0, m.st.Outage.Until.Sub(m.now).Round(time.Second))
}

// beside returns the lines about what else there is while a question or a list is shown.
func (m *screen) beside() (lines []string) {
	add := func(text string) { lines = append(lines, paint.Faint.Render(paint.Cut(text, m.width))) }
	if len(m.mine) > 0 && m.question() != nil {
		add("running: " + result.Call(m.mine[0].Call, m.info.Dir))
	}
	if n := len(m.queue.List()); n > 0 {
		add(quote.Number(n, "message") + " queued")
	}
	if !m.edit.Empty() {
		add("you were typing: " + oneLine(clean(m.edit.Value())))
	}
	return lines
}

func (m *screen) queued() (lines []string) {
	add := func(text, how string) {
		lines = append(lines, paint.Faint.Render(paint.Cut(oneLine(clean(text)), m.width-len(how))+how))
	}
	texts := m.queue.List()
	for i, text := range texts {
		how := ""
		if i == len(texts)-1 {
			how = "  (↑ edits it)"
		}
		add("queued: "+text, how)
	}
	return lines
}

func (m *screen) status() (lines []string) {
	if m.hint != "" && m.now.Sub(m.hinted) < hintFor {
		return paint.Wrap(paint.Yellow.Render(m.hint), m.width)
	}
	for _, l := range paint.Flow(m.standing(), m.width) {
		lines = append(lines, paint.Faint.Render(l))
	}
	return lines
}

func (m *screen) standing() []string {
	mode := m.approval()
	if m.planning() {
		mode = "plan mode (Shift-Tab)"
	}
	if m.info.Task == "" {
		parts := []string{"/help", "@file", "!command", "Ctrl-C twice leaves"}
		if m.o.Request.Plan != nil {
			parts = append([]string{mode}, parts...)
		}
		return parts
	}
	parts := []string{term.ModelName(m.info.Model), mode}
	narrow := m.width <= 60
	tokens := m.st.Context.Tokens
	if m.st.Model.EAS > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s EAS", paint.Count(tokens), paint.Count(m.st.Model.EAS)))
	}
	if m.st.Model.Window > 0 && !narrow {
		parts[len(parts)-1] += fmt.Sprintf(" (window %s)", paint.Count(m.st.Model.Window))
	}
	if usd := m.st.Totals.Usage.USD; usd > 0 {
		parts = append(parts, state.Dollars(usd))
	}
	parts = append(parts, fmt.Sprintf("step %d", m.st.Current))
	if n := m.st.Totals.Jumps; n > 0 {
		if from := m.branch(); from >= 0 {
			parts[len(parts)-1] += fmt.Sprintf(", branch from %d", from)
		}
		parts = append(parts, quote.Number(n, "jump"))
	}
	if n := len(m.st.Jobs.Running); n > 0 && m.s != nil {
		parts = append(parts, quote.Number(n, "job")+" (/jobs)")
	}
	if narrow { // drop the model's name: it does not change
		parts = parts[1:]
	}
	return parts
}

// branch returns the step at which the current path last left another; below 0 if it is the first.
func (m *screen) branch() int {
	for id := range m.st.Steps.Back(m.st.Current) {
		if from := m.st.Steps.At(id).Parent; id > 0 && from != id-1 {
			return from
		}
	}
	return -1
}

func (m *screen) approval() string {
	if m.st.Grants.Mode != "" && m.st.Grants.Mode != m.st.Opened.Approval {
		return m.st.Grants.Mode // the user changed it since
	}
	return cmp.Or(m.info.Approval, m.o.Request.Approval, m.o.Request.Default.Approval, string(approval.ModeAsk))
}

// greet introduces the program before there is a task.
func (m *screen) greet() {
	m.print(paint.Bold.Render("anamnesis "+m.o.Version) + paint.Faint.Render(" · "+term.ShortDir(m.o.Request.Dir)))
	m.print(paint.Faint.Render("Type a request. /help lists commands, Esc interrupts, Esc twice jumps back."))
}

// heading prints the task and its settings before the first answer.
func (m *screen) heading() {
	if m.info.Banner != "" { // it holds the recording's whole path
		path, _ := strings.CutPrefix(m.info.Model, "script:")
		m.print(paint.Faint.Render(clean(strings.ReplaceAll(m.info.Banner, path, filepath.Base(path)))))
	}
	for _, w := range m.info.Warnings {
		m.print(paint.Yellow.Render("! " + clean(w)))
	}
	text := fmt.Sprintf("task %s · %s · EAS %d · approval %s · %s", m.info.Task, term.ModelName(m.info.Model),
		m.info.EAS, m.info.Approval, term.ShortDir(m.info.Dir))
	if m.info.Limits != "" {
		text += " · " + m.info.Limits
	}
	m.print(paint.Faint.Render(text))
	if !m.fresh {
		m.print(paint.Faint.Render("continues at step " + fmt.Sprint(m.st.Current) + ": " +
			paint.Cut(oneLine(clean(taskdir.Title(m.st.Said.Request))), m.width-30)))
	}
}

func (m *screen) outcome(msg turnMsg) {
	switch {
	case msg.err != nil:
		m.fail(msg.err)
	case msg.out.Reason == "interrupted":
		text := strings.TrimSuffix(": "+msg.out.Detail, ": ") + " · everything so far is recorded"
		if !m.leaving && !m.o.Once {
			text += "; type to continue"
		}
		m.print(paint.Yellow.Render("interrupted") + paint.Faint.Render(text))
	case msg.out.Reason != "done" && msg.out.Reason != "idle":
		text := msg.out.Reason
		if msg.out.Err != nil {
			text += ": " + msg.out.Err.Error()
		} else if msg.out.Detail != "" {
			text += ": " + msg.out.Detail
		}
		if msg.out.Limit != "" {
			text += fmt.Sprintf("; raise --%s to continue", msg.out.Limit)
		}
		if m.turn.fault != "" && strings.HasSuffix(text, m.turn.fault) { // it was printed
			text = msg.out.Reason
		}
		m.print(paint.Red.Render(clean(text)))
	}
}

// summary closes a turn: what it changed, tested, cost and wrote.
func (m *screen) summary(s stepsMsg) {
	var parts []string
	if s.changed > 0 {
		parts = append(parts, fmt.Sprintf("%s changed: %s", quote.Number(s.changed, "file"), named(s.names, s.changed)))
	}
	parts = append(parts, m.turn.tests...)
	u, was := m.st.Totals.Usage, m.turn.usage
	if n := u.Tokens() - was.Tokens(); n > 0 {
		parts = append(parts, paint.Count(n)+" tokens")
	}
	if usd := u.USD - was.USD; usd > 0 {
		parts = append(parts, state.Dollars(usd))
	}
	if n := m.st.Totals.CardsWritten - m.turn.cards; n > 0 {
		parts = append(parts, quote.Number(n, "card")+" written")
	}
	if d := s.took.Round(time.Second); d >= time.Second {
		parts = append(parts, d.String())
	}
	m.print("")
	if len(parts) > 0 {
		m.print(paint.Faint.Render("── " + strings.Join(slices.Compact(parts), " · ")))
	}
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
