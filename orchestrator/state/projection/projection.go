// Package projection builds the model's context from the operations of a task. It depends on
// nothing but its arguments.
package projection

import (
	"slices"
	"strings"
	"sync"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

// Context is the model's context. It is updated incrementally: an operation appends, a pass
// replaces a span in place, and a masking shortens results in place. Everything before that
// place stays byte-identical to what the provider has cached. The zero Context is empty. Its
// exported fields are what a snapshot stores; only this package changes them.
type Context struct {
	System    string
	SystemTok int
	Tokens    int // of the system prompt and everything below
	Entries   []Entry
	// Held are user entries that arrived while a request or a call was open. They follow the
	// results, so that every call is followed by its result and no reply seems to answer words
	// it never saw.
	Held    []Entry
	Asking  bool
	Waiting map[string]bool // ids of the calls without a result

	off    bool // it stays empty: see Off
	images int  // bytes of the images in Entries and Held
}

// Off returns a context that stays empty.
func Off() Context { return Context{off: true} }

// Restored returns the context that a snapshot stored.
func Restored(c Context) Context {
	for _, e := range slices.Concat(c.Entries, c.Held) {
		for _, part := range e.Msg.Parts {
			c.images += len(part.Base64)
		}
	}
	return c
}

// EntryKind says what may remove an entry.
type EntryKind int

const (
	EntryPlain EntryKind = iota // a pass over its seq removes it
	EntryBlock                  // blocks and strategies: only a pass that makes room removes them
	EntryWords                  // words carried over: nothing removes them
	EntryMail                   // D-Mails: a pass that makes room and a later one that reaches as far back remove them
)

// Entry is one message of the context and the operation it comes from. A snapshot of the index
// stores it in this form.
type Entry struct {
	Seq  uint64
	Step int
	Kind EntryKind
	Tok  int // tokens of Msg in its present form
	Msg  model.Message

	// Of tool results only: the mark that ends the step, if the result carries it, and the
	// operation that masked the result, 0 if none did.
	MarkSeq uint64 `json:",omitempty"`
	MarkTok int    `json:",omitempty"`
	Mark    string `json:",omitempty"`
	Masked  uint64 `json:",omitempty"`

	First uint64 `json:",omitempty"` // of a D-Mail: the first operation it replaces
}

// withMark returns a result, or the line that masks it, with the step's mark.
func (e *Entry) withMark(text string) string {
	if e.Mark == "" {
		return text
	}
	return strings.TrimRight(text, "\n") + "\n" + e.Mark
}

// UnknownResult is the result that the model sees of a call with an unknown outcome.
const UnknownResult = "Outcome unknown: the program stopped while this call was running. " +
	"It may have taken effect, in part or in full. Look before you repeat it."

// Apply applies one operation to the context. Passes take effect later: see Compact.
func (p *Context) Apply(o op.Op) {
	if p.off {
		return
	}
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		p.System, p.SystemTok = b.System, o.Tok
		p.Tokens += o.Tok
	case *op.UserSaid, *op.CardsRecalled, *op.NoticeGiven, *op.JobEnded, *op.WorldRestored, *op.CheckRan, *op.ModeSet,
		*op.WorldChanged, *op.HookRan:
		p.user(o, EntryPlain, op.ProjectedText(o.Body), o.Tok)
	case *op.StrategyGiven:
		p.user(o, EntryBlock, b.Text, o.Tok)
	case *op.ModelAsked:
		p.ask(b.LastSeq)
	case *op.ModelReplied:
		p.reply(o, b)
	case *op.ModelFailed:
		p.Asking = false
		p.release()
	case *op.TaskResumed:
		p.Asking = false
		p.release()
		p.user(o, EntryPlain, b.Notice, o.Tok)
	case *op.ToolReturned:
		p.result(o, b)
	case *op.WorldSaved:
		p.mark(o, b.Mark)
	case *op.ContextMasked:
		p.mask(o.Seq, b)
	case *op.JumpDone:
		words, notice := shares(o.Tok, b.Words, b.Notice)
		p.user(o, EntryWords, b.Words, words)
		p.user(o, EntryPlain, b.Notice, notice)
	case *op.ApprovalDecided, *op.CheckpointMarked, *op.GitSeen, *op.JobStarted, *op.JumpDropped, *op.JumpIntended,
		*op.InboxRead, *op.JumpRequested, *op.LogRecovered, *op.LogSealed, *op.MailDelivered, *op.OutputKept,
		*op.PassBegun,
		*op.PassDone, *op.QuestionAnswered, *op.QuestionAsked, *op.ReflectAsked, *op.ReflectFailed, *op.RepairsFound,
		*op.ResearchDone, *op.RestoreIntended,
		*op.SubagentEnded, *op.SubagentStarted, *op.TodosSet, *op.ToolCalled, *op.ToolStarted, *op.TurnEnded:
		// The model is not shown these, or a pass shows them later.
	}
}

// shares splits the tokens of an operation that makes two messages.
func shares(tok int, a, b string) (int, int) {
	first := int(int64(tok) * int64(len(a)) / int64(max(len(a)+len(b), 1)))
	return first, tok - first
}

func (p *Context) user(o op.Op, kind EntryKind, text string, tok int) {
	if text == "" {
		return
	}
	e := Entry{Seq: o.Seq, Step: o.Step, Kind: kind, Tok: tok, Msg: model.Message{Role: model.RoleUser, Text: text}}
	p.attachImages(&e.Msg, o.Body)
	p.Tokens += tok
	if p.Asking || len(p.Waiting) > 0 {
		p.Held = append(p.Held, e)
		return
	}
	p.Entries = append(p.Entries, e)
}

// ask begins a request that includes operations up to last. Later words wait for the reply,
// which did not see them.
func (p *Context) ask(last uint64) {
	p.Asking = true
	n := len(p.Entries)
	for n > 0 && p.Entries[n-1].Seq > last && p.Entries[n-1].Msg.Role == model.RoleUser {
		n--
	}
	p.Held = slices.Concat(p.Entries[n:], p.Held)
	p.Entries = p.Entries[:n]
}

func (p *Context) release() {
	if p.Asking || len(p.Waiting) > 0 {
		return
	}
	p.Entries = append(p.Entries, p.Held...)
	p.Held = nil
}

func (p *Context) reply(o op.Op, b *op.ModelReplied) {
	p.Asking = false
	if len(b.Calls) == 0 && strings.TrimSpace(b.Text) == "" { // providers refuse an empty message
		p.Waiting = nil
		p.release()
		return
	}
	p.Tokens += o.Tok
	if b.Joins && p.joinReply(o, b) {
		return
	}
	p.Entries = append(p.Entries, Entry{Seq: o.Seq, Step: o.Step, Tok: o.Tok, Msg: model.Message{
		Role: model.RoleAssistant, Text: b.Text, Reasoning: b.Reasoning, Calls: b.Calls, Extra: b.Extra,
		Origin: b.Origin,
	}})
	p.Waiting = make(map[string]bool, len(b.Calls))
	for _, c := range b.Calls {
		p.Waiting[c.ID] = true
	}
	p.release()
}

// joinReply adds the calls of a reply to the message of the previous one, and reports whether
// there is one.
func (p *Context) joinReply(o op.Op, b *op.ModelReplied) bool {
	for i := len(p.Entries) - 1; i >= 0 && p.Entries[i].Step == o.Step && len(p.Waiting) > 0; i-- {
		e := &p.Entries[i]
		if e.Msg.Role != model.RoleAssistant {
			continue
		}
		e.Msg.Calls, e.Tok = slices.Concat(e.Msg.Calls, b.Calls), e.Tok+o.Tok
		for _, c := range b.Calls {
			p.Waiting[c.ID] = true
		}
		return true
	}
	return false
}

func (p *Context) result(o op.Op, b *op.ToolReturned) {
	delete(p.Waiting, b.Call)
	p.Tokens += o.Tok
	m := model.Message{Role: model.RoleTool, Text: b.Text, CallID: b.Call, Name: b.Name}
	p.attachImages(&m, b)
	p.Entries = append(p.Entries, Entry{Seq: o.Seq, Step: o.Step, Tok: o.Tok, Msg: m})
	p.release()
}

// mark appends the step mark to the last tool result of the step, which no request has carried
// yet, or adds it as a message of its own.
func (p *Context) mark(o op.Op, text string) {
	if text == "" {
		return
	}
	for i := len(p.Entries) - 1; i >= 0 && p.Entries[i].Step == o.Step; i-- {
		if e := &p.Entries[i]; e.Msg.Role == model.RoleTool {
			e.MarkSeq, e.MarkTok, e.Mark = o.Seq, o.Tok, text
			e.Msg.Text = e.withMark(e.Msg.Text)
			e.Tok += o.Tok
			p.Tokens += o.Tok
			return
		} else if e.Msg.Role == model.RoleAssistant {
			break
		}
	}
	p.user(o, EntryPlain, text, o.Tok)
}

// mask replaces results by lines. The step's mark stays.
func (p *Context) mask(seq uint64, b *op.ContextMasked) {
	by := make(map[uint64]op.MaskedResult, len(b.Results))
	for _, r := range b.Results {
		by[r.Seq] = r
	}
	for i := range p.Entries {
		e := &p.Entries[i]
		r, ok := by[e.Seq]
		if !ok || e.Msg.Role != model.RoleTool || e.Masked != 0 {
			continue
		}
		e.Masked = seq
		e.Msg.Text = e.withMark(r.Line)
		p.unlook(&e.Msg)
		p.Tokens -= e.Tok
		e.Tok = r.Tok + e.MarkTok
		p.Tokens += e.Tok
	}
}

// Pass is an anamnesis pass with its place in the stream.
type Pass struct {
	*op.PassDone
	Seq  uint64
	Step int
	Tok  int // of its block and words
}

// takes reports whether a pass removes an entry from the context. A pass that makes room also
// removes the blocks of earlier passes, which would otherwise accumulate; a D-Mail removes the
// D-Mails that replace nothing older than it does.
func (p Pass) takes(e Entry) bool {
	in := slices.ContainsFunc(p.Ranges, func(r op.Range) bool { return r.Contains(e.Seq) })
	switch e.Kind {
	case EntryPlain:
		return in
	case EntryBlock:
		return in && p.Trigger == op.TriggerWindow
	case EntryMail:
		return in && (p.Trigger == op.TriggerWindow || p.Trigger == op.TriggerMail && p.Ranges[0].First <= e.First)
	}
	return false
}

// block returns the entry that replaces a pass's ranges.
func (p Pass) block(tok int) Entry {
	e := Entry{Seq: p.Seq, Step: p.Step, Kind: EntryBlock, Tok: tok}
	e.Msg = model.Message{Role: model.RoleUser, Text: p.Block}
	if p.Trigger == op.TriggerMail {
		e.Kind, e.First = EntryMail, p.Ranges[0].First
	}
	return e
}

// Compact replaces the entries that a pass takes by its block, at the place of the first of them.
// Passes that make room and D-Mails carry the user's words themselves.
func (p *Context) Compact(b Pass) {
	if p.off {
		return
	}
	at := slices.IndexFunc(p.Entries, b.takes)
	if at < 0 {
		at = len(p.Entries)
	}
	rest := slices.Clone(p.Entries[at:])
	block, words := shares(b.Tok, b.Block, b.Words)
	p.Entries = append(p.Entries[:at], b.block(block))
	p.Tokens += block
	if b.Words != "" {
		p.Tokens += words
		p.Entries = append(p.Entries, Entry{
			Seq: b.Seq, Step: b.Step, Kind: EntryWords, Tok: words,
			Msg: model.Message{Role: model.RoleUser, Text: b.Words},
		})
	}
	last := len(p.Entries) - 1
	for _, e := range rest {
		if b.takes(e) {
			p.Tokens -= e.Tok
			if e.Msg.Role == model.RoleUser { // the user's images stay with their words
				p.keepImages(&p.Entries[last], e.Msg.Parts)
			} else {
				p.unlook(&e.Msg)
			}
			continue
		}
		p.Entries = append(p.Entries, e)
	}
}

// Removes returns how many messages, and their tokens, a pass would remove from the context.
func (p *Context) Removes(done *op.PassDone) (messages, tokens int) {
	b := Pass{PassDone: done}
	for _, e := range p.Entries {
		if b.takes(e) {
			messages++
			tokens += e.Tok
		}
	}
	return messages, tokens
}

// Visible returns a function that reports whether the context holds a result in full.
func (p *Context) Visible() func(seq uint64) bool {
	in := sync.OnceValue(func() map[uint64]bool {
		in := make(map[uint64]bool)
		for _, e := range p.Entries {
			if e.Msg.Role == model.RoleTool && e.Masked == 0 {
				in[e.Seq] = true
			}
		}
		return in
	})
	return func(seq uint64) bool { return in()[seq] }
}

// Chat returns what the model is sent next: the system prompt, then one message per entry,
// adjacent user messages merged. It is always a valid chat: every call is followed by exactly
// one result, even after a crash.
func (p *Context) Chat() []model.Message {
	out := make([]model.Message, 0, len(p.Entries)+2)
	p.Each(func(m model.Message, _ []Entry) { out = append(out, m) })
	return out
}

// Each calls visit with each message of Chat and its entries: several if user messages merge,
// none for the result of a call with an unknown outcome.
func (p *Context) Each(visit func(m model.Message, of []Entry)) {
	if p.System != "" {
		m := model.Message{Role: model.RoleSystem, Text: p.System}
		visit(m, []Entry{{Seq: 1, Tok: p.SystemTok, Msg: m}})
	}
	entries := slices.Concat(p.Entries, p.Held)
	for i := 0; i < len(entries); {
		m, first := entries[i].Msg, i
		i++
		if m.Role == model.RoleUser {
			texts := []string{m.Text}
			for ; i < len(entries) && entries[i].Msg.Role == model.RoleUser; i++ {
				texts = append(texts, entries[i].Msg.Text)
				m.Parts = slices.Concat(m.Parts, entries[i].Msg.Parts)
			}
			m.Text = strings.Join(texts, "\n\n")
			visit(m, entries[first:i])
			continue
		}
		visit(m, entries[first:i])
		// Results follow their calls directly. Only the last reply can lack one, and then the
		// outcome is unknown.
		first = i
		for ; i < len(entries) && entries[i].Msg.Role == model.RoleTool; i++ {
			visit(entries[i].Msg, entries[i:i+1])
		}
		for _, c := range m.Calls {
			if !slices.ContainsFunc(entries[first:i], func(e Entry) bool { return e.Msg.CallID == c.ID }) {
				visit(model.Message{Role: model.RoleTool, CallID: c.ID, Name: c.Name, Text: UnknownResult}, nil)
			}
		}
	}
}
