package memory

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/orchestrator/model"
)

// Arm is one way to keep a context.
type Arm struct {
	Name  string
	What  string // in a few words, and after whom
	Jumps bool   // the agent may go back; without, it undoes by hand
	Mail  bool   // the reason of a jump is a D-Mail
	Pass  bool   // the rule and the pass are at work
	Hold  bool   // a call that a jump has undone is held once
	// Writer: a simulated model writes the pass's notes, wrong with probability
	// WriterError; without it the extractor writes.
	Writer      bool
	WriterError float64
	// WriterCards: it writes cards, too, with the same errors.
	WriterCards bool
	// view returns the messages as this arm's agent sees them; if nil, as the
	// product sends them.
	view func(*agent, []model.Message) []model.Message
}

// View returns the messages as the arm's agent sees them.
func (m *Arm) View(a *agent, msgs []model.Message) []model.Message {
	if m.view == nil {
		return msgs
	}
	return m.view(a, msgs)
}

// keepOutputs is how many of the last outputs masking leaves in full: 10, as in
// Lindenbauer et al., "The Complexity Trap", 2025.
const keepOutputs = 10

// The names of the arms that claims are made about.
const (
	ArmForget    = "forget"
	ArmMail      = "dmail"
	ArmMask      = "mask"
	ArmMaskJump  = "mask+jump"
	ArmAnamnesis = "anamnesis"
)

// Arms are all arms, in the order of the table.
func Arms() []Arm {
	return []Arm{
		{Name: "none", What: "no rollback: everything stays in the context, up to the window", view: toWindow},
		{Name: ArmForget, What: "rollback that forgets: the span is cut out and nothing takes its place", Jumps: true, view: rewind(false)},
		{Name: ArmMail, What: "D-Mail (Kimi CLI): the span is cut out, the agent's own message, capped like a block, takes its place", Jumps: true, Mail: true, view: rewind(true)},
		{Name: "window", What: "no rollback, sliding window: the request and the last EAS tokens", view: slide},
		{Name: ArmMask, What: "no rollback, observation masking: outputs older than the last 10 to 20 become one line, ten at a time", view: mask(keepOutputs)},
		{Name: "mask-rolling", What: "the same, one output at a time as published", view: mask(1)},
		{Name: ArmMaskJump, What: "masking beside our rollback: the files go back, the masked context stays", Jumps: true, view: mask(keepOutputs)},
		{Name: ArmMaskJump + "+hold", What: "the same, with our hold of undone calls", Jumps: true, Hold: true, view: mask(keepOutputs)},
		{Name: "notes", What: "a notes file outside the rollback: the span is cut out, every reason given so far stays", Jumps: true, view: notes},
		{Name: "notes+hold", What: "the same, with our hold of undone calls", Jumps: true, Hold: true, view: notes},
		{Name: "compact", What: "compaction beside our rollback: everything stays up to one EAS, then the agent's summary takes its place", Jumps: true, view: compact},
		{Name: "compact+hold", What: "the same, with our hold of undone calls", Jumps: true, Hold: true, view: compact},
		{Name: ArmAnamnesis, What: "rollback with the pass; the extractor writes", Jumps: true, Pass: true, Hold: true},
		{Name: ArmAnamnesis + "-nohold", What: "the same, without the hold of undone calls", Jumps: true, Pass: true},
		{Name: ArmAnamnesis + "-w0", What: "a simulated model writes, never wrong", Jumps: true, Pass: true, Hold: true, Writer: true},
		{Name: ArmAnamnesis + "-w10", What: "wrong in 10 % of its statements", Jumps: true, Pass: true, Hold: true, Writer: true, WriterError: 0.1},
		{Name: ArmAnamnesis + "-w30", What: "wrong in 30 % of its statements", Jumps: true, Pass: true, Hold: true, Writer: true, WriterError: 0.3},
	}
}

// toWindow drops the oldest messages after the request when the window is full.
func toWindow(a *agent, msgs []model.Message) []model.Message { return a.lastOf(msgs, a.p.Window) }

// slide keeps the last EAS tokens. A provider's cache does not survive it, as in
// every sliding window.
func slide(a *agent, msgs []model.Message) []model.Message { return a.lastOf(msgs, a.p.EAS) }

// lastOf keeps the system prompt, the request and the last messages that fit in
// limit tokens with them, calls with their results.
func (a *agent) lastOf(msgs []model.Message, limit int) []model.Message {
	size := 0
	for _, m := range msgs {
		size += a.read(m).tokens
	}
	const head = 2
	from := head
	for size > limit && from < len(msgs)-2 {
		size -= a.read(msgs[from]).tokens
		from++
		for from < len(msgs)-2 && msgs[from].Role == model.RoleTool {
			size -= a.read(msgs[from]).tokens
			from++
		}
	}
	if from == head {
		return msgs
	}
	return append(msgs[:head:head], msgs[from:]...)
}

// mask replaces old outputs by one line, batch of them at a time, so that the
// cached prefix breaks once a batch.
func mask(batch int) func(*agent, []model.Message) []model.Message {
	return func(a *agent, msgs []model.Message) []model.Message {
		outputs := 0
		for _, m := range msgs {
			if m.Role == model.RoleTool {
				outputs++
			}
		}
		hide := max(outputs-keepOutputs, 0) / batch * batch
		out := make([]model.Message, 0, len(msgs))
		for _, m := range msgs {
			if m.Role == model.RoleTool && hide > 0 {
				hide--
				r := a.read(m)
				m.Text = fmt.Sprintf("(output of %d tokens hidden)", r.tokens)
				if r.mark != "" {
					m.Text += "\n[step " + r.mark + "]"
				}
			}
			out = append(out, m)
		}
		return a.lastOf(out, a.p.Window)
	}
}

// rewind cuts the steps that a jump left out of the context, as rollbacks do
// that know only one context: it ends with the target step, and a line says that
// the files went back. mail puts the agent's message there.
func rewind(mail bool) func(*agent, []model.Message) []model.Message {
	return func(a *agent, msgs []model.Message) []model.Message {
		var out []model.Message
		for _, m := range msgs {
			r := a.read(m)
			if m.Role != model.RoleUser || r.jumpTo == "" {
				out = append(out, m)
				continue
			}
			out = cutTo(a, out, r.jumpTo)
			text := fmt.Sprintf("[JUMP] You went back from step %s to step %s.", r.jumpFrom, r.jumpTo)
			if mail {
				text += "\nA message from your future self; it may have worked in this directory already:\n" + reasonIn(m.Text)
			}
			out = append(out, model.Message{Role: model.RoleUser, Text: text})
		}
		return a.lastOf(out, a.p.Window)
	}
}

// notes cuts the steps that a jump left out of the context, as rewind does, and puts
// there what the agent wrote into a file that no rollback touches: the reasons of all
// jumps so far, each once.
func notes(a *agent, msgs []model.Message) []model.Message {
	var file []string
	var out []model.Message
	for _, m := range msgs {
		r := a.read(m)
		if m.Role != model.RoleUser || r.jumpTo == "" {
			out = append(out, m)
			continue
		}
		if line := reasonIn(m.Text); !slices.Contains(file, line) {
			file = append(file, line)
		}
		text := fmt.Sprintf("[JUMP] You went back from step %s to step %s.\nNOTES.md, which stays as it is:\n%s", r.jumpFrom, r.jumpTo, strings.Join(file, "\n"))
		out = append(cutTo(a, out, r.jumpTo), model.Message{Role: model.RoleUser, Text: text})
	}
	return a.lastOf(out, a.p.Window)
}

// compact replaces the context by the agent's own summary when it is over one EAS, as
// coding agents do near the end of the window; the request and the last output stay, and
// so does where each decision was made. An agent that waits for the window recalls less.
// The summary's request is paid for: its prompt is the cached context.
func compact(a *agent, msgs []model.Message) []model.Message {
	const head = 2
	a.compacted.from = max(a.compacted.from, head)
	build := func() []model.Message {
		return slices.Concat(msgs[:min(head, len(msgs))], a.compacted.summary, msgs[min(a.compacted.from, len(msgs)):])
	}
	out, size := build(), 0
	for _, m := range out {
		size += a.read(m).tokens
	}
	last := len(msgs) - 1 // with the call that the output belongs to
	for last > a.compacted.from && msgs[last].Role != model.RoleAssistant {
		last--
	}
	if size <= a.p.EAS || last <= a.compacted.from {
		return out
	}
	text := a.mail("Summary of the work so far:", out, size)
	a.m.Cached, a.m.Output = a.m.Cached+size, a.m.Output+tokensOf(text)
	a.m.PassTokens += size + tokensOf(text)
	summary := []model.Message{{Role: model.RoleUser, Text: text}}
	for _, m := range out {
		if m.Role == model.RoleAssistant && len(a.read(m).tries) > 0 {
			said, _, _ := strings.Cut(m.Text, "\n")
			summary = append(summary, model.Message{Role: model.RoleAssistant, Text: said})
		}
	}
	a.compacted.summary, a.compacted.from = summary, last
	return build()
}

// reasonIn takes the reason out of a jump's notice.
func reasonIn(notice string) string {
	_, rest, _ := strings.Cut(notice, ". Reason: ")
	reason, _, _ := strings.Cut(rest, "\nThe working directory is as")
	return reason
}

// cutTo ends the context with the message that carries a step's mark.
func cutTo(a *agent, msgs []model.Message, step string) []model.Message {
	for i := len(msgs) - 1; i >= 0; i-- {
		if a.read(msgs[i]).mark == step {
			return msgs[: i+1 : i+1]
		}
	}
	return msgs[:min(2, len(msgs))]
}
