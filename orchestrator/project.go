package orchestrator

import (
	"slices"
	"strings"
	"sync"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// A projection is the model's context as a function of the operations. It is
// kept incrementally: one more operation appends, a pass takes entries out of
// the middle, replacing a span at its place, and a masking shortens results at
// theirs. What stands before that place is not touched, so that it stays
// byte-identical to what the provider has cached.
type projection struct {
	system    string
	systemTok int
	tokens    int // of everything below and the system prompt
	entries   []entry
	// held are user entries that arrived while a request or a call was open:
	// they follow the results, so that every call is followed by its result and
	// no answer seems to come after words it never saw.
	held    []entry
	images  int // bytes of the images in entries
	asking  bool
	waiting map[string]bool // ids of the calls without a result
	// joins are merged texts as they were joined last, by the first entry's seq: blocks
	// and carried words are much text, and stay.
	joins map[uint64]joinedTexts
}

type joinedTexts struct {
	of   []string
	text string
}

// maxJoins is how many merged texts are kept at most.
const maxJoins = 64

// entryKind says what may remove an entry.
type entryKind int

const (
	entryPlain entryKind = iota // a pass over its seq removes it
	entryBlock                  // blocks and strategies: only a pass for want of room removes them
	entryWords                  // words carried over: nothing removes them
	entryMail                   // D-Mails: a later one that reaches as far back removes them, and a pass for want of room
)

// entry is one message of the context and the operation it comes from.
type entry struct {
	seq  uint64
	step int
	kind entryKind
	tok  int // tokens of msg, as it stands here
	msg  model.Message

	first uint64 // of a D-Mail: the first operation it stands for

	// Of tool results only.
	mark   stepMark
	masked uint64 // the operation that masked it, 0 while it stands in full
}

// stepMark is the mark that ends a step, within its last result.
type stepMark struct {
	seq  uint64
	tok  int
	text string
}

// resultText is a result, or the line in its place, with the step's mark.
func (m stepMark) resultText(text string) string {
	if m.text == "" {
		return text
	}
	return strings.TrimRight(text, "\n") + "\n" + m.text
}

// unknownResult is what the model is told of a call whose outcome is unknown.
const unknownResult = "Outcome unknown: the program stopped while this call was running. " +
	"It may have taken effect, in part or in full. Look before you repeat it."

func (p *projection) apply(o op.Op) {
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		p.system, p.systemTok = b.System, o.Tok
		p.tokens += o.Tok
	case *op.UserSaid:
		p.user(o, entryPlain, b.Text, o.Tok)
	case *op.CardsRecalled:
		if !b.InResult() {
			p.user(o, entryPlain, b.Text, o.Tok)
		}
	case *op.NoticeGiven:
		p.user(o, entryPlain, b.Text, o.Tok)
	case *op.JobEnded:
		p.user(o, entryPlain, b.Notice, o.Tok)
	case *op.WorldRestored:
		if b.Notice != "" {
			p.user(o, entryPlain, b.Notice, o.Tok)
		}
	case *op.WorldChanged:
		p.user(o, entryPlain, b.Notice, o.Tok)
	case *op.StrategyGiven:
		p.user(o, entryBlock, b.Text, o.Tok)
	case *op.ModelAsked:
		p.ask(b.LastSeq)
	case *op.ModelReplied:
		p.reply(o, b)
	case *op.ModelFailed:
		p.asking = false
		p.release()
	case *op.TaskResumed:
		p.asking = false
		p.release()
		p.user(o, entryPlain, b.Notice, o.Tok)
	case *op.ToolReturned:
		p.result(o, b)
	case *op.WorldSaved:
		p.mark(o, b.Mark)
	case *op.ContextMasked:
		p.mask(o.Seq, b)
	case *op.JumpDone:
		words, notice := shares(o.Tok, b.Words, b.Notice)
		p.user(o, entryWords, b.Words, words)
		p.user(o, entryPlain, b.Notice, notice)
	}
}

// shares splits the tokens of an operation that stands as two messages.
func shares(tok int, a, b string) (int, int) {
	if a == "" || b == "" {
		if a == "" {
			return 0, tok
		}
		return tok, 0
	}
	first := int(int64(tok) * int64(len(a)) / int64(len(a)+len(b)))
	return first, tok - first
}

func (p *projection) user(o op.Op, kind entryKind, text string, tok int) {
	if text == "" {
		return
	}
	e := entry{seq: o.Seq, step: o.Step, kind: kind, tok: tok, msg: model.Message{Role: model.RoleUser, Text: text}}
	p.tokens += tok
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
	p.tokens += o.Tok
	p.entries = append(p.entries, entry{seq: o.Seq, step: o.Step, tok: o.Tok, msg: model.Message{
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
	p.tokens += o.Tok
	m := model.Message{Role: model.RoleTool, Text: b.Text, CallID: b.Call, Name: b.Name}
	p.look(&m, b)
	p.entries = append(p.entries, entry{seq: o.Seq, step: o.Step, tok: o.Tok, msg: m})
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
			e.mark = stepMark{seq: o.Seq, tok: o.Tok, text: text}
			e.msg.Text = e.mark.resultText(e.msg.Text)
			e.tok += o.Tok
			p.tokens += o.Tok
			return
		} else if e.msg.Role == model.RoleAssistant {
			break
		}
	}
	p.user(o, entryPlain, text, o.Tok)
}

// mask puts lines in the place of results. The step's mark stays.
func (p *projection) mask(seq uint64, b *op.ContextMasked) {
	by := make(map[uint64]op.MaskedResult, len(b.Results))
	for _, r := range b.Results {
		by[r.Seq] = r
	}
	for i := range p.entries {
		e := &p.entries[i]
		r, ok := by[e.seq]
		if !ok || e.msg.Role != model.RoleTool || e.masked != 0 {
			continue
		}
		e.masked = seq
		e.msg.Text = e.mark.resultText(r.Line)
		p.unlook(&e.msg)
		p.tokens -= e.tok
		e.tok = r.Tok + e.mark.tok
		p.tokens += e.tok
	}
}

// takes reports whether a pass removes an entry from the context. A pass for
// want of room takes the blocks of earlier passes with it, which would else pile
// up; a D-Mail takes the D-Mails that stand for nothing older than it does.
func (p PassRecord) takes(e entry) bool {
	in := slices.ContainsFunc(p.Ranges, func(r op.Range) bool { return r.Contains(e.seq) })
	switch e.kind {
	case entryPlain:
		return in
	case entryBlock:
		return in && p.Trigger == triggerWindow
	case entryMail:
		return in && (p.Trigger == triggerWindow || p.Trigger == triggerMail && p.Ranges[0].First <= e.first)
	}
	return false
}

// block is the entry that stands for a pass.
func (p PassRecord) block(tok int) entry {
	e := entry{seq: p.Seq, step: p.Step, kind: entryBlock, tok: tok, msg: model.Message{Role: model.RoleUser, Text: p.Block}}
	if p.Trigger == triggerMail {
		e.kind, e.first = entryMail, p.Ranges[0].First
	}
	return e
}

// fold replaces the entries that a pass takes by its block, where the first of
// them stood. Passes for want of room and D-Mails bring the person's words
// themselves.
func (p *projection) fold(b PassRecord) {
	at := slices.IndexFunc(p.entries, b.takes)
	if at < 0 {
		at = len(p.entries)
	}
	kept := make([]entry, 0, len(p.entries)+2)
	kept = append(kept, p.entries[:at]...)
	block, words := shares(b.Tok, b.Block, b.Words)
	kept = append(kept, b.block(block))
	p.tokens += block
	if b.Words != "" {
		p.tokens += words
		kept = append(kept, entry{seq: b.Seq, step: b.Step, kind: entryWords, tok: words, msg: model.Message{Role: model.RoleUser, Text: b.Words}})
	}
	for _, e := range p.entries[at:] {
		if b.takes(e) {
			p.tokens -= e.tok
			p.unlook(&e.msg)
			continue
		}
		kept = append(kept, e)
	}
	p.entries = kept
}

// weigh counts the entries that a pass would remove, and their tokens.
func (p *projection) weigh(b PassRecord) (messages, tokens int) {
	for _, e := range p.entries {
		if b.takes(e) {
			messages++
			tokens += e.tok
		}
	}
	return messages, tokens
}

// shows tells which results stand in full in the context.
func (p *projection) shows() func(seq uint64) bool {
	in := sync.OnceValue(func() map[uint64]bool {
		in := make(map[uint64]bool)
		for _, e := range p.entries {
			if e.msg.Role == model.RoleTool && e.masked == 0 {
				in[e.seq] = true
			}
		}
		return in
	})
	return func(seq uint64) bool { return in()[seq] }
}

// Projection is the chat the model is sent next: the system prompt, then one
// message per entry, adjacent user messages merged. It is always a valid chat:
// every call is followed by exactly one result, whatever crashed.
func (s *State) Projection() []model.Message {
	out := make([]model.Message, 0, len(s.projection.entries)+2)
	if s.projection.system != "" {
		out = append(out, model.Message{Role: model.RoleSystem, Text: s.projection.system})
	}
	s.projection.messages(func(m model.Message, _ []entry) { out = append(out, m) })
	return out
}

// messages gives the messages after the system prompt, each with the entries
// it is made of: several where user messages merge, none for the result of a
// call whose outcome is unknown.
func (p *projection) messages(give func(m model.Message, of []entry)) {
	entries := p.entries
	if len(p.held) > 0 {
		entries = slices.Concat(p.entries, p.held)
	}
	for i := 0; i < len(entries); {
		m, first := entries[i].msg, i
		i++
		if m.Role == model.RoleUser {
			texts := []string{m.Text}
			for ; i < len(entries) && entries[i].msg.Role == model.RoleUser; i++ {
				texts = append(texts, entries[i].msg.Text)
			}
			m.Text = p.join(entries[first].seq, texts)
			give(m, entries[first:i])
			continue
		}
		give(m, entries[first:i])
		if len(m.Calls) == 0 {
			continue
		}
		// Results follow their calls at once; the only reply that can lack one is
		// the last, and then the outcome is unknown.
		first = i
		for ; i < len(entries) && entries[i].msg.Role == model.RoleTool; i++ {
			give(entries[i].msg, entries[i:i+1])
		}
		if i-first >= len(m.Calls) {
			continue
		}
		for _, c := range m.Calls {
			if !slices.ContainsFunc(entries[first:i], func(e entry) bool { return e.msg.CallID == c.ID }) {
				give(model.Message{Role: model.RoleTool, CallID: c.ID, Name: c.Name, Text: unknownResult}, nil)
			}
		}
	}
}

// join merges the texts of adjacent entries.
func (p *projection) join(first uint64, texts []string) string {
	if len(texts) == 1 {
		return texts[0]
	}
	if kept := p.joins[first]; slices.Equal(kept.of, texts) {
		return kept.text
	}
	if p.joins == nil || len(p.joins) == maxJoins {
		p.joins = make(map[uint64]joinedTexts)
	}
	kept := joinedTexts{texts, strings.Join(texts, "\n\n")}
	p.joins[first] = kept
	return kept.text
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
		if b.InResult() {
			return ""
		}
		return b.Text
	case *op.NoticeGiven:
		return b.Text
	case *op.TaskResumed:
		return b.Notice
	case *op.JobEnded:
		return b.Notice
	case *op.WorldRestored:
		return b.Notice
	case *op.WorldChanged:
		return b.Notice
	case *op.StrategyGiven:
		return b.Text
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
		return strings.TrimSuffix(b.Block+"\n"+b.Words, "\n")
	case *op.JumpDone:
		return b.Words + "\n" + b.Notice
	}
	return ""
}
