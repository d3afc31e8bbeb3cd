package orchestrator

import (
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// A projection is the model's context as a function of the operations. It is
// kept incrementally: one more operation appends, and only a pass takes
// entries out of the middle, replacing a discarded span at its place. What
// stands before that place is not touched, so that it stays byte-identical to
// what the provider has cached.
type projection struct {
	system  string
	entries []entry
	// held are user entries that arrived while a request or a call was open:
	// they follow the results, so that every call is followed by its result and
	// no answer seems to come after words it never saw.
	held    []entry
	asking  bool
	waiting map[string]bool // ids of the calls without a result
}

// entryKind says what may remove an entry.
type entryKind int

const (
	entryPlain  entryKind = iota // a pass over its seq removes it
	entrySticky                  // blocks and words carried over: nothing removes it
)

// entry is one message of the context and the operation it comes from.
type entry struct {
	seq  uint64
	step int
	kind entryKind
	msg  model.Message
}

// unknownResult is what the model is told of a call whose outcome is unknown.
const unknownResult = "Outcome unknown: the program stopped while this call was running. " +
	"It may have taken effect, in part or in full. Look before you repeat it."

func (p *projection) apply(o op.Op) {
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		p.system = b.System
	case *op.UserSaid:
		p.user(o, entryPlain, b.Text)
	case *op.CardsRecalled:
		if b.Why != "asked" { // asked: the tool's own result shows it
			p.user(o, entryPlain, b.Text)
		}
	case *op.NoticeGiven:
		p.user(o, entryPlain, b.Text)
	case *op.WorldRestored:
		p.user(o, entryPlain, b.Notice)
	case *op.ModelAsked:
		p.ask(b.LastSeq)
	case *op.ModelReplied:
		p.reply(o, b)
	case *op.ModelFailed, *op.TaskResumed:
		p.asking = false
		p.release()
	case *op.ToolReturned:
		p.result(o, b)
	case *op.WorldSaved:
		p.mark(o, b.Mark)
	case *op.JumpDone:
		p.user(o, entrySticky, b.Words)
		p.user(o, entryPlain, b.Notice)
	}
}

func (p *projection) user(o op.Op, kind entryKind, text string) {
	if text == "" {
		return
	}
	e := entry{seq: o.Seq, step: o.Step, kind: kind, msg: model.Message{Role: model.RoleUser, Text: text}}
	if p.asking || len(p.waiting) > 0 {
		p.held = append(p.held, e)
		return
	}
	p.entries = append(p.entries, e)
}

// ask begins a request that ends with op last. Words that came too late for
// it wait for the reply: it did not see them.
func (p *projection) ask(last uint64) {
	p.asking = true
	n := len(p.entries)
	for n > 0 && p.entries[n-1].seq > last && p.entries[n-1].msg.Role == model.RoleUser {
		n--
	}
	if n < len(p.entries) {
		p.held = append(slices.Clone(p.entries[n:]), p.held...)
		p.entries = p.entries[:n]
	}
}

func (p *projection) release() {
	if p.asking || len(p.waiting) > 0 {
		return
	}
	p.entries = append(p.entries, p.held...)
	p.held = nil
}

func (p *projection) reply(o op.Op, b *op.ModelReplied) {
	p.asking = false
	p.entries = append(p.entries, entry{seq: o.Seq, step: o.Step, msg: model.Message{
		Role: model.RoleAssistant, Text: b.Text, Reasoning: b.Reasoning, Calls: b.Calls,
	}})
	p.waiting = make(map[string]bool, len(b.Calls))
	for _, c := range b.Calls {
		p.waiting[c.ID] = true
	}
	p.release()
}

func (p *projection) result(o op.Op, b *op.ToolReturned) {
	delete(p.waiting, b.Call)
	p.entries = append(p.entries, entry{seq: o.Seq, step: o.Step, msg: model.Message{
		Role: model.RoleTool, Text: b.Text, CallID: b.Call, Name: b.Name,
	}})
	p.release()
}

// mark writes the step mark: into the last tool result of the step, which no
// request has carried yet, or as a message of its own.
func (p *projection) mark(o op.Op, text string) {
	if text == "" {
		return
	}
	for i := len(p.entries) - 1; i >= 0 && p.entries[i].step == o.Step; i-- {
		if e := &p.entries[i]; e.msg.Role == model.RoleTool {
			e.msg.Text = strings.TrimRight(e.msg.Text, "\n") + "\n" + text
			return
		} else if e.msg.Role == model.RoleAssistant {
			break
		}
	}
	p.user(o, entryPlain, text)
}

// fold replaces the entries of the pass's ranges by its block, where the
// ranges began.
func (p *projection) fold(b PassRecord) {
	covered := func(e entry) bool {
		return e.kind != entrySticky && slices.ContainsFunc(b.Ranges, func(r op.Range) bool { return r.Contains(e.seq) })
	}
	at := slices.IndexFunc(p.entries, covered)
	if at < 0 {
		at = len(p.entries)
	}
	kept := make([]entry, 0, len(p.entries))
	kept = append(kept, p.entries[:at]...)
	kept = append(kept, entry{seq: b.Seq, step: b.Step, kind: entrySticky,
		msg: model.Message{Role: model.RoleUser, Text: b.Block}})
	for _, e := range p.entries[at:] {
		if !covered(e) {
			kept = append(kept, e)
		}
	}
	p.entries = kept
}

// Projection is the chat the model is sent next: the system prompt, then one
// message per entry, adjacent user messages merged. It is always a valid chat:
// every call is followed by exactly one result, whatever crashed.
func (s *State) Projection() []model.Message {
	p := &s.projection
	out := make([]model.Message, 0, len(p.entries)+2)
	if p.system != "" {
		out = append(out, model.Message{Role: model.RoleSystem, Text: p.system})
	}
	entries := p.entries
	if len(p.held) > 0 {
		entries = slices.Concat(p.entries, p.held)
	}
	for i := 0; i < len(entries); i++ {
		m := entries[i].msg
		if n := len(out); m.Role == model.RoleUser && n > 0 && out[n-1].Role == model.RoleUser {
			out[n-1].Text += "\n\n" + m.Text
			continue
		}
		out = append(out, m)
		if len(m.Calls) == 0 {
			continue
		}
		// Results follow their calls at once; the only reply that can lack one is
		// the last, and then the outcome is unknown.
		missing := make(map[string]bool, len(m.Calls))
		for _, c := range m.Calls {
			missing[c.ID] = true
		}
		for i+1 < len(entries) && entries[i+1].msg.Role == model.RoleTool {
			i++
			delete(missing, entries[i].msg.CallID)
			out = append(out, entries[i].msg)
		}
		for _, c := range m.Calls {
			if missing[c.ID] {
				out = append(out, model.Message{Role: model.RoleTool, CallID: c.ID, Name: c.Name, Text: unknownResult})
			}
		}
	}
	return out
}

// projectedText is the text of an operation as the model would see it: what
// its tok field counts.
func projectedText(b op.Body) string {
	switch b := b.(type) {
	case *op.TaskOpened:
		return b.System
	case *op.UserSaid:
		return b.Text
	case *op.CardsRecalled:
		if b.Why == "asked" {
			return ""
		}
		return b.Text
	case *op.NoticeGiven:
		return b.Text
	case *op.WorldRestored:
		return b.Notice
	case *op.ModelReplied:
		var sb strings.Builder
		sb.WriteString(b.Text)
		for _, c := range b.Calls {
			sb.WriteString("\n" + c.Name + " " + c.Args)
		}
		return sb.String()
	case *op.ToolReturned:
		return b.Text
	case *op.WorldSaved:
		return b.Mark
	case *op.PassDone:
		return b.Block
	case *op.JumpDone:
		return b.Words + "\n" + b.Notice
	}
	return ""
}
