// Package script is a model with prepared replies: a YAML file of turns, each with the
// expected request and the reply. It serves demos and tests, states at every start that it is
// a recording, and fails if a request differs from the expected one.
// docs/reference/script-model.md is the format.
package script

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/model"
)

const (
	// MaxFileBytes bounds a script's size.
	MaxFileBytes = 4 << 20
	// MaxDelay bounds a fault's delay and a fault's retry_after.
	MaxDelay = time.Hour
	// MaxFaultTimes bounds how many tries of a turn one fault affects.
	MaxFaultTimes = 1000
)

// Model plays one script. It is safe for concurrent use, but the turns of one Model belong to
// one task: load the file again for another.
type Model struct {
	file  string // as given to Load, or the name given to Parse
	name  string
	eas   string
	turns []turn
	// passes, reflections and probes are rules for those purposes.
	passes      []rule
	reflections []rule
	probes      []rule
	repeats     bool // some turn may be repeated
	subagents   []subagent

	mu    sync.Mutex
	fired map[string]int // tries that met a fault in this process, by place
}

// subagent is the turns of one subagent, in each of its tasks.
type subagent struct {
	agent string
	when  condition
	words *Model
}

func newModel(file, name string, turns []turn) *Model {
	return &Model{file: file, name: name, turns: turns,
		repeats: slices.ContainsFunc(turns, func(t turn) bool { return t.until != nil }),
		fired:   make(map[string]int)}
}

// Load reads a script. An unreadable file returns the system's error, a malformed one a
// *SyntaxError.
func Load(path string) (*Model, error) {
	data, err := durable.ReadFile(path, MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("load script: %w", err)
	}
	return parse(path, data)
}

// Parse reads a script from memory. Its errors name it "script".
func Parse(data []byte) (*Model, error) { return parse("script", data) }

// Name identifies the script: script: and its name, or its file's name.
func (m *Model) Name() string { return "script:" + m.title() }

// EASModel returns the name of the model whose effective attention span is assumed, from the
// script's `model`; empty if it has none.
func (m *Model) EASModel() string { return m.eas }

// Banner returns the line that informs a user that no model is used.
func (m *Model) Banner() string {
	return fmt.Sprintf("This is a recording: the model's words come from the script %q (%s). The rest of the program "+
		"is at work for real.", m.title(), m.file)
}

func (m *Model) title() string {
	if m.name != "" {
		return m.name
	}
	base := filepath.Base(m.file)
	return strings.TrimSuffix(base, filepath.Ext(base))
}

// Mismatch reports an unexpected request. It is the cause of a model.Fault of kind script,
// which is never retryable.
type Mismatch struct {
	File     string
	Line     int    // of the expectation
	Purpose  string // of the request
	Turn     int    // the request's, from 0
	Expected string
	Got      string // the actual text, shortened; may be empty
}

func (e *Mismatch) Error() string {
	s := fmt.Sprintf("%s:%d: %s turn %d: expected %s", e.File, e.Line, e.Purpose, e.Turn, e.Expected)
	if e.Got != "" {
		s += "; got " + e.Got
	}
	return s
}

func (m *Model) Ask(ctx context.Context, r model.Request, on func(model.Delta)) (model.Reply, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, canceled(ctx)
	}
	r.Purpose = cmp.Or(r.Purpose, model.PurposeStep)
	if r.Mark != "" { // a script is written without the word, which differs in each task
		r.Messages = slices.Clone(r.Messages)
		for i := range r.Messages {
			r.Messages[i].Text = strings.ReplaceAll(r.Messages[i].Text, " "+r.Mark, "")
		}
		r.Mark = ""
	}
	if r.Agent != "" && r.Purpose == model.PurposeStep {
		return m.askSubagent(ctx, r, on)
	}
	cue, err := m.find(r)
	if err == nil {
		err = m.check(r, cue)
	}
	if err == nil {
		cue.answer, err = m.fill(r, cue.answer)
	}
	if err != nil {
		return model.Reply{}, &model.Fault{Kind: model.FaultScript, Tries: 1, Err: err}
	}
	return m.play(ctx, r, cue, on)
}

// askSubagent has the first entry for the agent whose condition holds answer. Its turns are
// counted in the subagent's own task.
func (m *Model) askSubagent(ctx context.Context, r model.Request, on func(model.Delta)) (model.Reply, error) {
	for _, s := range m.subagents {
		if s.agent == r.Agent && s.when.holds(r, scopeJoined) {
			r.Agent = ""
			return s.words.Ask(ctx, r, on)
		}
	}
	return model.Reply{}, &model.Fault{Kind: model.FaultScript, Tries: 1,
		Err: m.lost(r, 1, "an entry of `subagents` to match",
			fmt.Sprintf("the subagent %q and %d entries", r.Agent, len(m.subagents)))}
}

// cue is the answer that matches a request.
type cue struct {
	expect []condition
	answer answer
	place  string // identifies the turn or rule, for faults
	calls  string // prefix of the ids of its calls
}

func (m *Model) find(r model.Request) (cue, error) {
	switch r.Purpose {
	case model.PurposeStep:
		return m.findTurn(r)
	case model.PurposePass:
		return m.findRule(r, "passes", m.passes)
	case model.PurposeReflect:
		return m.findRule(r, "reflections", m.reflections)
	case model.PurposeProbe:
		return m.findRule(r, "probes", m.probes)
	}
	return cue{}, m.lost(r, 1, "a request for step, pass, reflect or probe", fmt.Sprintf("purpose %q", r.Purpose))
}

func (m *Model) findTurn(r model.Request) (cue, error) {
	at, err := m.locate(r)
	if err != nil {
		return cue{}, err
	}
	t := m.turns[at]
	c, i := pick(t.choices, r, scopeResult)
	if i < 0 {
		return cue{}, m.lost(r, t.line, "one of the turn's alternatives to match", lastResult(r))
	}
	return cue{
		expect: slices.Concat(t.expect, c.expect),
		answer: c.answer,
		place:  fmt.Sprintf("step %d", r.Turn),
		calls:  fmt.Sprintf("call_%d_%d", r.Turn, at),
	}, nil
}

func (m *Model) findRule(r model.Request, list string, rules []rule) (cue, error) {
	if rule, i := pick(rules, r, scopeJoined); i >= 0 {
		return cue{
			expect: rule.expect,
			answer: rule.answer,
			place:  fmt.Sprintf("%s %d", list, i),
			calls:  fmt.Sprintf("call_%s_%d_%d", r.Purpose, i, r.Turn),
		}, nil
	}
	return cue{}, m.lost(r, 1, "a rule of `"+list+"` to match", fmt.Sprintf("%d rules, none of which does", len(rules)))
}

// check returns the first expectation that does not hold, or nil.
func (m *Model) check(r model.Request, c cue) error {
	for _, e := range c.expect {
		if want, got := e.failure(r, scopeAny); want != "" {
			return m.lost(r, e.line, want, got)
		}
	}
	return nil
}

// play returns the answer, or the fault before it.
func (m *Model) play(ctx context.Context, r model.Request, c cue, on func(model.Delta)) (model.Reply, error) {
	if on == nil {
		on = func(model.Delta) {}
	}
	reply := c.answer.reply(r, c.calls, m.Name())
	f := c.answer.fault
	switch {
	case f == nil || !m.fire(c.place, f.times):
	case f.status != 0:
		return model.Reply{}, f.http()
	case f.cut != nil:
		partial := firstChars(reply.Text, *f.cut)
		stream(partial, func(s string) { on(model.Delta{Text: s}) })
		return model.Reply{}, &model.Fault{Kind: model.FaultCut, Retryable: true, Partial: partial, Tries: 1,
			Err: errors.New("the script cuts the reply here")}
	case model.Wait(ctx, f.delay) != nil:
		return model.Reply{}, canceled(ctx)
	}
	stream(reply.Reasoning, func(s string) { on(model.Delta{Reasoning: s}) })
	stream(reply.Text, func(s string) { on(model.Delta{Text: s}) })
	return reply, nil
}

// fire reports whether the fault at place still affects a try.
func (m *Model) fire(place string, times int) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fired[place] >= times {
		return false
	}
	m.fired[place]++
	return true
}

func canceled(ctx context.Context) *model.Fault {
	return &model.Fault{Kind: model.FaultCanceled, Tries: 1, Err: ctx.Err()}
}

// pieceLength is how many characters a script streams at a time.
const pieceLength = 40

// stream passes text on in pieces, as a model would.
func stream(text string, give func(string)) {
	for text != "" {
		piece := firstChars(text, pieceLength)
		give(piece)
		text = text[len(piece):]
	}
}

func firstChars(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// answer is the reply of a turn, an alternative or a rule.
type answer struct {
	line      int
	text      string
	reasoning string
	calls     []call
	usage     *op.Usage
	finish    string
	fault     *fault
	captures  []capture
}

type call struct {
	line int
	id   string // empty: derived from the turn and the position
	name string
	args string
}

func (a answer) reply(r model.Request, prefix, name string) model.Reply {
	out := model.Reply{Text: a.text, Reasoning: a.reasoning, Finish: a.finish, Model: name}
	for i, c := range a.calls {
		id := cmp.Or(c.id, fmt.Sprintf("%s_%d", prefix, i+1))
		out.Calls = append(out.Calls, op.Call{ID: id, Name: c.name, Args: c.args})
	}
	if out.Finish == "" {
		out.Finish = "stop"
		if len(out.Calls) > 0 {
			out.Finish = "tool_calls"
		}
	}
	if a.usage != nil {
		out.Usage = *a.usage
	} else {
		out.Usage = model.EstimateUsage(r, out)
		out.Usage.Priced = out.Usage.Tokens() // a recording costs nothing
	}
	return out
}

// fault is a fault of the first tries of a turn.
type fault struct {
	times      int
	status     int
	retryAfter time.Duration
	body       string
	cut        *int // characters that still arrive
	delay      time.Duration
}

// http returns the fault of an endpoint's error status.
func (f *fault) http() *model.Fault {
	out := &model.Fault{Kind: model.FaultHTTP, Status: f.status, RetryAfter: f.retryAfter, Tries: 1,
		Err: errors.New(f.body)}
	switch {
	case f.status == 413 || f.status == 400 && strings.Contains(f.body, "context_length_exceeded"):
		out.Kind = model.FaultOverflow
	case f.status >= 401 && f.status <= 404:
		out.Kind = model.FaultRefused
	default:
		out.Retryable = f.status == 408 || f.status == 409 || f.status == 425 || f.status == 429 || f.status >= 500
	}
	return out
}
