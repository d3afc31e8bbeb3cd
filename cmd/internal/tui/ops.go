//go:build unix

package tui

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/anamnesis/testrun"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/cmd/internal/tui/result"
	"anamnesis/cmd/internal/tui/shell"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/mention"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/tool/file"
	"anamnesis/worldstate"
)

// How many lines are shown.
const (
	liveLines = 4 // of the output of a call that runs
	maxReason = 6 // of why a call failed
	headSaid  = 5 // of a longer message of the user
	tailSaid  = 2
	maxSaid   = 600 // columns of one line of it
	maxRows   = 3   // of one line of its output
)

// refusedByUser is the result of a call that the user refused without a reason. It is not
// shown to the user.
const refusedByUser = "Refused by the user." // tasks recorded earlier have "the person"

// call is a call of the reply under way.
type call struct {
	op.Call
	begun    time.Time // zero if it has not begun
	progress string
	changes  []file.Change
}

// turn describes the turn of the user's last request.
type turn struct {
	after uint64 // the last operation before its request, if it has one
	usage op.Usage
	cards int
	fault string   // of the model, as printed
	tests []string // commands that run tests, with how they ended
}

type reply struct {
	text     string // not printed yet
	thinking string
	streamed bool // part of this reply was printed
}

func (m *screen) call(id string) *call {
	for _, c := range m.calls {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// ensureCall returns the call with an id, which it adds if it is not known.
func (m *screen) ensureCall(id string) *call {
	c := m.call(id)
	if c == nil {
		c = &call{Call: op.Call{ID: id}}
		m.calls = append(m.calls, c)
	}
	return c
}

func (m *screen) delta(d model.Delta) {
	if d.Restart {
		m.finish()
		m.print(paint.Yellow.Render("(the reply was cut off; asking again)"))
		m.reply = reply{}
		return
	}
	m.activity = ""
	m.reply.thinking += d.Reasoning
	if m.reply.text += d.Text; d.Text != "" {
		m.foldThinking()
	}
	m.printReply(paint.StablePrefix(m.reply.text))
}

func (m *screen) finish() {
	m.foldThinking()
	m.printReply(len(m.reply.text))
}

// foldThinking prints one line of what the model thought before it spoke or called; the rest is behind a command.
func (m *screen) foldThinking() {
	if t := strings.TrimSpace(m.reply.thinking); t != "" {
		end := "  " + quote.Number(strings.Count(t, "\n")+1, "line") + ": /thoughts"
		m.print("")
		m.print(paint.Faint.Render(paint.Cut("∴ "+oneLine(clean(t)), m.width-len(end)) + end))
	}
	m.reply.thinking = ""
}

// printReply prints the first n bytes of the reply's text.
func (m *screen) printReply(n int) {
	if strings.TrimSpace(m.reply.text[:n]) != "" {
		m.print("")
		m.print(strings.Join(m.markdown(m.reply.text[:n]), "\n"))
		m.reply.streamed = true
	}
	m.reply.text = m.reply.text[n:]
}

// apply shows an operation that has become durable.
func (m *screen) apply(o op.Op) {
	if o.Seq > m.st.Last && state.Fold(m.st, o) != nil {
		if st, err := m.o.Service.State(m.o.Task); err == nil { // an operation was missed
			m.st = st
		}
	}
	switch b := o.Body.(type) {
	case *op.ModelReplied:
		if !m.reply.streamed && m.reply.text == "" {
			m.reply.text, m.reply.thinking = b.Text, cmp.Or(m.reply.thinking, b.Reasoning)
		}
		m.finish()
		m.reply = reply{}
		for _, c := range b.Calls {
			m.calls = append(m.calls, &call{Call: c})
		}
		m.words.op(o)
	case *op.ToolCalled:
		c := m.ensureCall(b.Call)
		c.Name, c.Args, c.begun = b.Name, b.Args, m.now
		m.activity = ""
	case *op.ApprovalDecided:
		if c := m.call(b.Call); c != nil && b.Args != "" {
			c.Args = b.Args
		}
	case *op.ToolReturned:
		m.returned(o.Step, b)
	case *op.WorldSaved:
		if b.Error != "" || !b.Complete || len(b.Lost) > 0 {
			m.event(o)
		}
	case *op.UserSaid:
		if b.Source == op.SourceSteer || b.Source == op.SourceRejection {
			m.printRequest(b.Text)
			break
		}
		for _, l := range mention.Attached(b.Text) {
			m.print(paint.Faint.Render("  " + clean(l)))
		}
	case *op.ModelFailed:
		if m.ending || m.leaving { // the user knows
			break
		}
		if b.Wait != nil { // the last line shows when it is asked again
			if m.turn.fault != b.Error {
				m.print(paint.Yellow.Render("! the provider fails and is asked again: " + clean(b.Error)))
			}
			m.turn.fault = b.Error
			break
		}
		m.turn.fault = b.Error
		m.event(o)
	case *op.JumpDone:
		m.jumped(o, b)
	case *op.TodosSet:
		m.event(o)
		m.printTodos(b.Todos)
	case *op.PassDone, *op.RepairsFound:
		m.activity = ""
		m.event(o)
	default:
		m.event(o)
	}
}

// event shows an operation in the words of the plain printer, in the colour of its icon.
func (m *screen) event(o op.Op) {
	style := paint.Faint.Render
	switch timeline.LineOf(o, m.info.Dir).Icon {
	case "!", "●", "↩":
		style = paint.Yellow.Render
	case "✦":
		style = paint.Cyan.Render
	case "◆", "✳":
		style = paint.Purple.Render
	}
	if text := m.words.op(o); text != "" {
		for line := range strings.SplitSeq(text, "\n") {
			m.print(style(line))
		}
	}
}

// jumped shows a jump, set off by a rule.
func (m *screen) jumped(o op.Op, b *op.JumpDone) {
	m.print(paint.Yellow.Render(strings.Repeat("─", m.width)))
	m.event(o)
	if why := oneLine(clean(m.st.Steps.At(b.From).LeftBy)); why != "" {
		m.print("  " + paint.Faint.Render("why:     ") + why)
	}
	for i, path := range b.Reverted {
		if i == maxNamed {
			m.print(fmt.Sprintf("  and %s", quote.Number(b.NReverted-i, "more file")))
			break
		}
		m.print("  " + paint.Faint.Render(fmt.Sprintf("%-8s ", timeline.FileAction(b, path))) + clean(path))
	}
	stays := "the record of those steps, in the context as it was"
	if b.Compacted {
		stays = "a block of what those steps showed"
	}
	m.print("  " + paint.Faint.Render("stays:   ") + stays + paint.Faint.Render("; see /timeline"))
	m.print("")
}

// printRequest shows the user's words; of many lines, the first and the last.
func (m *screen) printRequest(text string) {
	if text == "" {
		return
	}
	m.print("")
	for i, line := range term.Shortened(text, headSaid, tailSaid, 0, "") {
		mark := "> "
		if i > 0 {
			mark = "  "
		}
		style := paint.Bold
		if i == headSaid && strings.HasPrefix(line, "… ") {
			style = paint.Faint
		}
		m.print(paint.Blue.Bold(true).Render(mark) + style.Render(paint.Cut(line, maxSaid)))
	}
	m.print("")
}

// returned shows how a call of a step ended, with the lines of a diff or of its output.
func (m *screen) returned(step int, b *op.ToolReturned) {
	c := m.call(b.Call)
	if c == nil {
		c = &call{Call: op.Call{ID: b.Call, Name: b.Name}}
		if r := m.st.Reply; r != nil { // an earlier process began it
			if i := slices.IndexFunc(r.Calls, func(s state.CallState) bool { return s.ID == b.Call }); i >= 0 {
				c.Call = r.Calls[i].Call
			}
		}
	}
	m.calls = slices.DeleteFunc(m.calls, func(o *call) bool { return o == c })
	m.feed.Forget(b.Call)
	c.Name = b.Name
	if op.Acts(b.Name) == op.Plans && !b.IsError && !b.Refused {
		return // the list itself was shown
	}
	dot, how := paint.Green.Render("●"), result.Duration(b.Millis)
	switch {
	case b.Unknown:
		dot, how = paint.Yellow.Render("●"), "outcome unknown"
	case b.Exit == nil && notice.Halted(b) != "":
		dot, how = paint.Yellow.Render("●"), notice.Halted(b)
	case b.Refused:
		dot, how = paint.Yellow.Render("●"), "not run"
	case b.Exit != nil:
		how = result.Exited(b)
		if *b.Exit != 0 {
			dot = paint.Red.Render("●")
		}
	case b.IsError:
		dot, how = paint.Red.Render("●"), "failed"
	case len(b.Parts) > 0 && b.Display != "": // an image
		how = b.Display
	}
	if how != "" {
		how = "  " + paint.Faint.Render(how)
	}
	what := result.Call(c.Call, m.info.Dir)
	if len(c.changes) == 1 && !b.Refused && !b.IsError {
		what = paint.Bold.Render(clean(c.Name)) + " " +
			paint.Title(c.changes[0], m.width-len(c.Name)-len(paint.Strip(how))-3)
	}
	m.print(paint.Cut(dot+" "+what, m.width-len(paint.Strip(how))) + how)
	if b.Exit != nil {
		if run, ok := testrun.Parse(term.Command(c.Args), b.Output(), *b.Exit); ok {
			how := map[testrun.Status]string{testrun.RanNone: "ran no tests", testrun.Unclear: "ran"}[run.Status]
			m.turn.tests = append(m.turn.tests, run.Runner+" "+cmp.Or(how, string(run.Status)))
		}
	}
	switch {
	case b.Refused && b.Text == refusedByUser:
	case b.Refused || b.IsError && b.Exit == nil:
		lines := paint.Wrap(clean(result.ToUser(b.Text)), m.width-4)
		m.folded(term.Shortened(strings.Join(lines[:min(len(lines), maxReason)], "\n"), maxReason, 0, 0, ""))
	case b.Name == "AskUser":
		m.folded(term.Shortened(result.ToUser(b.Text), maxReason, 0, 0, ""))
	case len(c.changes) > 0:
		for _, change := range c.changes {
			render := paint.Change
			if len(c.changes) == 1 { // the title is printed
				render = paint.Diff
			}
			for _, l := range render(change, m.width-2, 16) {
				m.print("  " + l)
			}
		}
	case b.Exit == nil && result.Prints(b):
		m.folded(term.Shortened(result.ToUser(b.Text), term.HeadLines, term.TailLines, int(b.Cut),
			fmt.Sprintf(": /out %d", step)))
	case b.Exit != nil:
		m.folded(term.Folded(term.Command(c.Args), result.ToUser(term.Result(b.Text)), *b.Exit, int(b.Cut),
			fmt.Sprintf(": /out %d", step)))
	}
}

func scanText(p worldstate.Progress) string {
	if p.Done || p.Files == 0 {
		return ""
	}
	return fmt.Sprintf("reading the directory: %s", quote.Number(p.Files, "file"))
}

// shellMsg is the result of the user's shell command.
type shellMsg struct {
	line, out string
	err       error
	stopped   bool // by the user
}

func (m *screen) shell(line string) tea.Cmd {
	if m.stop != nil {
		m.say("one command at a time; Esc ends the one that runs")
		m.edit.Set("!" + line)
		return nil
	}
	ctx, stop := context.WithCancel(m.ctx)
	args, _ := json.Marshal(map[string]string{"command": line}) // a string never fails
	m.stop, m.mine = stop, []*call{{Call: op.Call{ID: mine, Name: mine, Args: string(args)}, begun: m.now}}
	dir, f := m.o.Request.Dir, m.feed
	return func() tea.Msg {
		defer stop()
		out, err := shell.Run(ctx, dir, line, func(p []byte) { f.Print(mine, p) })
		return shellMsg{line, out, err, ctx.Err() != nil}
	}
}

// mine is the name of the user's own command beside the calls.
const mine = "!"

// maxBesideRunes is how much of its output is sent to the model.
const maxBesideRunes = 4_000

func (m *screen) shellEnded(msg shellMsg) {
	m.stop, m.mine = nil, nil
	m.feed.Forget(mine)
	m.print(paint.Purple.Bold(true).Render("! ") + paint.Bold.Render(clean(msg.line)))
	m.folded(term.Shortened(msg.out, 20, 20, 0, ""))
	how := "exit 0"
	var ended *exec.ExitError
	switch {
	case errors.As(msg.err, &ended):
		shown := strings.Replace(ended.String(), "exit status", "exit", 1)
		if how = shown; msg.stopped {
			how, shown = "I ended it", "you ended it"
		}
		m.print(paint.Red.Render(shown))
	case msg.err != nil:
		m.fail(msg.err)
		return
	}
	text := []rune(msg.out)
	shown := msg.out
	if over := len(text) - maxBesideRunes; over > 0 { // a failure's cause is at either end
		shown = fmt.Sprintf("%s\n[… %d characters …]\n%s", string(text[:maxBesideRunes/2]), over,
			string(text[maxBesideRunes/2+over:]))
	}
	m.queue.Attach(msg.line, how, shown)
	m.print(paint.Faint.Render("its output is sent with your next message"))
}
