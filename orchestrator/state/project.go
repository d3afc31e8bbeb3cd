package state

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
	off       bool // nothing is kept: see NewOutline
	system    string
	systemTok int
	tokens    int // of everything below and the system prompt
	entries   []Entry
	// held are user entries that arrived while a request or a call was open:
	// they follow the results, so that every call is followed by its result and
	// no answer seems to come after words it never saw.
	held    []Entry
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

// EntryKind says what may remove an entry.
type EntryKind int

const (
	EntryPlain EntryKind = iota // a pass over its seq removes it
	EntryBlock                  // blocks and strategies: only a pass for want of room removes them
	EntryWords                  // words carried over: nothing removes them
	EntryMail                   // D-Mails: a later one that reaches as far back removes them, and a pass for want of room
)

// Entry is one message of the context and the operation it comes from. It is
// stored in a snapshot of the index as it is.
type Entry struct {
	Seq  uint64
	Step int
	Kind EntryKind
	Tok  int // tokens of Msg, as it stands here
	Msg  model.Message

	// Of tool results only: the mark that ends the step, if the result carries it,
	// and the operation that masked the result, 0 while it stands in full.
	MarkSeq uint64 `json:",omitempty"`
	MarkTok int    `json:",omitempty"`
	Mark    string `json:",omitempty"`
	Masked  uint64 `json:",omitempty"`

	First uint64 `json:",omitempty"` // of a D-Mail: the first operation it stands for
}

// withMark returns a result, or the line in its place, with the step's mark.
func (e *Entry) withMark(text string) string {
	if e.Mark == "" {
		return text
	}
	return strings.TrimRight(text, "\n") + "\n" + e.Mark
}

// NewOutline returns an empty state that keeps no context: it has no messages, no entries
// and no calls that a guard could compare. It is for readers of steps, jumps and totals.
func NewOutline() *State { return &State{projection: projection{off: true}} }

// UnknownResult is what the model is told of a call whose outcome is unknown.
const UnknownResult = "Outcome unknown: the program stopped while this call was running. " +
	"It may have taken effect, in part or in full. Look before you repeat it."

func (p *projection) apply(o op.Op) {
	if p.off {
		return
	}
	switch b := o.Body.(type) {
	case *op.TaskOpened:
		p.system, p.systemTok = b.System, o.Tok
		p.tokens += o.Tok
	case *op.UserSaid:
		p.user(o, EntryPlain, b.Text, o.Tok)
	case *op.CardsRecalled:
		if !b.InResult() {
			p.user(o, EntryPlain, b.Text, o.Tok)
		}
	case *op.NoticeGiven:
		p.user(o, EntryPlain, b.Text, o.Tok)
	case *op.JobEnded:
		p.user(o, EntryPlain, b.Notice, o.Tok)
	case *op.WorldRestored:
		if b.Notice != "" {
			p.user(o, EntryPlain, b.Notice, o.Tok)
		}
	case *op.WorldChanged:
		p.user(o, EntryPlain, b.Notice, o.Tok)
	case *op.StrategyGiven:
		p.user(o, EntryBlock, b.Text, o.Tok)
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

func (p *projection) user(o op.Op, kind EntryKind, text string, tok int) {
	if text == "" {
		return
	}
	e := Entry{Seq: o.Seq, Step: o.Step, Kind: kind, Tok: tok, Msg: model.Message{Role: model.RoleUser, Text: text}}
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
	for n > 0 && p.entries[n-1].Seq > last && p.entries[n-1].Msg.Role == model.RoleUser {
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
	if b.Joins && p.joinReply(o, b) {
		return
	}
	p.entries = append(p.entries, Entry{Seq: o.Seq, Step: o.Step, Tok: o.Tok, Msg: model.Message{
		Role: model.RoleAssistant, Text: b.Text, Reasoning: b.Reasoning, Calls: b.Calls,
	}})
	p.waiting = make(map[string]bool, len(b.Calls))
	for _, c := range b.Calls {
		p.waiting[c.ID] = true
	}
	p.release()
}

// joinReply adds the calls of a reply to the message of the one before, and reports whether
// there is one.
func (p *projection) joinReply(o op.Op, b *op.ModelReplied) bool {
	for i := len(p.entries) - 1; i >= 0 && p.entries[i].Step == o.Step && len(p.waiting) > 0; i-- {
		e := &p.entries[i]
		if e.Msg.Role != model.RoleAssistant {
			continue
		}
		e.Msg.Calls, e.Tok = slices.Concat(e.Msg.Calls, b.Calls), e.Tok+o.Tok
		for _, c := range b.Calls {
			p.waiting[c.ID] = true
		}
		return true
	}
	return false
}

func (p *projection) result(o op.Op, b *op.ToolReturned) {
	delete(p.waiting, b.Call)
	p.tokens += o.Tok
	m := model.Message{Role: model.RoleTool, Text: b.Text, CallID: b.Call, Name: b.Name}
	p.look(&m, b)
	p.entries = append(p.entries, Entry{Seq: o.Seq, Step: o.Step, Tok: o.Tok, Msg: m})
	p.release()
}

// mark writes the step mark: into the last tool result of the step, which no
// request has carried yet, or as a message of its own.
func (p *projection) mark(o op.Op, text string) {
	if text == "" {
		return
	}
	for i := len(p.entries) - 1; i >= 0 && p.entries[i].Step == o.Step; i-- {
		if e := &p.entries[i]; e.Msg.Role == model.RoleTool {
			e.MarkSeq, e.MarkTok, e.Mark = o.Seq, o.Tok, text
			e.Msg.Text = e.withMark(e.Msg.Text)
			e.Tok += o.Tok
			p.tokens += o.Tok
			return
		} else if e.Msg.Role == model.RoleAssistant {
			break
		}
	}
	p.user(o, EntryPlain, text, o.Tok)
}

// mask puts lines in the place of results. The step's mark stays.
func (p *projection) mask(seq uint64, b *op.ContextMasked) {
	by := make(map[uint64]op.MaskedResult, len(b.Results))
	for _, r := range b.Results {
		by[r.Seq] = r
	}
	for i := range p.entries {
		e := &p.entries[i]
		r, ok := by[e.Seq]
		if !ok || e.Msg.Role != model.RoleTool || e.Masked != 0 {
			continue
		}
		e.Masked = seq
		e.Msg.Text = e.withMark(r.Line)
		p.unlook(&e.Msg)
		p.tokens -= e.Tok
		e.Tok = r.Tok + e.MarkTok
		p.tokens += e.Tok
	}
}

// takes reports whether a pass removes an entry from the context. A pass for
// want of room takes the blocks of earlier passes with it, which would else pile
// up; a D-Mail takes the D-Mails that stand for nothing older than it does.
func (p PassRecord) takes(e Entry) bool {
	in := slices.ContainsFunc(p.Ranges, func(r op.Range) bool { return r.Contains(e.Seq) })
	switch e.Kind {
	case EntryPlain:
		return in
	case EntryBlock:
		return in && p.Trigger == TriggerWindow
	case EntryMail:
		return in && (p.Trigger == TriggerWindow || p.Trigger == TriggerMail && p.Ranges[0].First <= e.First)
	}
	return false
}

// block is the entry that stands for a pass.
func (p PassRecord) block(tok int) Entry {
	e := Entry{Seq: p.Seq, Step: p.Step, Kind: EntryBlock, Tok: tok, Msg: model.Message{Role: model.RoleUser, Text: p.Block}}
	if p.Trigger == TriggerMail {
		e.Kind, e.First = EntryMail, p.Ranges[0].First
	}
	return e
}

// Fold replaces the entries that a pass takes by its block, where the first of
// them stood. Passes for want of room and D-Mails bring the user's words
// themselves.
func (p *projection) fold(b PassRecord) {
	if p.off {
		return
	}
	at := slices.IndexFunc(p.entries, b.takes)
	if at < 0 {
		at = len(p.entries)
	}
	rest := slices.Clone(p.entries[at:])
	block, words := shares(b.Tok, b.Block, b.Words)
	p.entries = append(p.entries[:at], b.block(block))
	p.tokens += block
	if b.Words != "" {
		p.tokens += words
		p.entries = append(p.entries, Entry{Seq: b.Seq, Step: b.Step, Kind: EntryWords, Tok: words, Msg: model.Message{Role: model.RoleUser, Text: b.Words}})
	}
	for _, e := range rest {
		if b.takes(e) {
			p.tokens -= e.Tok
			p.unlook(&e.Msg)
			continue
		}
		p.entries = append(p.entries, e)
	}
}

// Removes counts the messages that a pass would take out of the context, and their
// tokens.
func (s *State) Removes(p *op.PassDone) (messages, tokens int) {
	b := PassRecord{PassDone: p}
	for _, e := range s.projection.entries {
		if b.takes(e) {
			messages++
			tokens += e.Tok
		}
	}
	return messages, tokens
}

// Shown returns a function that reports whether a result stands in full in the
// context.
func (s *State) Shown() func(seq uint64) bool {
	in := sync.OnceValue(func() map[uint64]bool {
		in := make(map[uint64]bool)
		for _, e := range s.projection.entries {
			if e.Msg.Role == model.RoleTool && e.Masked == 0 {
				in[e.Seq] = true
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
	s.EachMessage(func(m model.Message, _ []Entry) { out = append(out, m) })
	return out
}

// Entries returns what the context is made of, without the system prompt and the
// user's words that wait for a result. The caller must not change it.
func (s *State) Entries() []Entry { return s.projection.entries }

// EachMessage passes each message of Projection to give, with the entries it is made
// of: several where user messages merge, none for the result of a call whose outcome
// is unknown.
func (s *State) EachMessage(give func(m model.Message, of []Entry)) {
	p := &s.projection
	if p.system != "" {
		m := model.Message{Role: model.RoleSystem, Text: p.system}
		give(m, []Entry{{Seq: 1, Tok: p.systemTok, Msg: m}})
	}
	entries := p.entries
	if len(p.held) > 0 {
		entries = slices.Concat(p.entries, p.held)
	}
	for i := 0; i < len(entries); {
		m, first := entries[i].Msg, i
		i++
		if m.Role == model.RoleUser {
			texts := []string{m.Text}
			for ; i < len(entries) && entries[i].Msg.Role == model.RoleUser; i++ {
				texts = append(texts, entries[i].Msg.Text)
			}
			m.Text = p.join(entries[first].Seq, texts)
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
		for ; i < len(entries) && entries[i].Msg.Role == model.RoleTool; i++ {
			give(entries[i].Msg, entries[i:i+1])
		}
		if i-first >= len(m.Calls) {
			continue
		}
		for _, c := range m.Calls {
			if !slices.ContainsFunc(entries[first:i], func(e Entry) bool { return e.Msg.CallID == c.ID }) {
				give(model.Message{Role: model.RoleTool, CallID: c.ID, Name: c.Name, Text: UnknownResult}, nil)
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

// OpText is an operation as a user reads it: what the model saw of it, or
// its content where the model saw nothing.
func OpText(o op.Op) string {
	if o.Body == nil {
		return "(a kind of operation this program does not know)"
	}
	if b, ok := o.Body.(*op.OutputKept); ok {
		return b.Text
	}
	if text := op.ProjectedText(o.Body); strings.TrimSpace(text) != "" {
		return text
	}
	data, err := op.Encode(o.Body)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
