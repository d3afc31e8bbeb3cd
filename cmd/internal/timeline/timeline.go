// Package timeline is a task's two timelines as data: the line of operations
// and the tree of steps, with the jumps, blocks and cards made in it. It is
// pure: everything that a front end draws comes from the operations.
package timeline

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/state/steps"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/tool"
)

// maxAnswerRunes is how much of an answer its step's row shows.
const maxAnswerRunes = 80

// Timeline is what `timeline --json` prints.
type Timeline struct {
	ID      string `json:"id"`
	Dir     string `json:"dir"`
	Model   string `json:"model"`
	EAS     int    `json:"eas"`
	Ops     uint64 `json:"ops"`
	Current int    `json:"current"`
	Goal    string `json:"goal,omitempty"` // how its checks went, as a curve and in words
	Rows    []Row  `json:"rows"`
	// Requests are what the model was asked, in order.
	Requests []Request `json:"requests"`
}

type RowKind string

const (
	RowStep RowKind = "step"
	RowPass RowKind = "pass"
	RowMask RowKind = "mask"
	// RowStrategy is the Reflect-Agent's answer, or its absence.
	RowStrategy RowKind = "strategy"
	RowJump     RowKind = "jump"
	RowMail     RowKind = "mail"
	RowCards    RowKind = "cards"
	RowWords    RowKind = "words"
	RowEnd      RowKind = "end"
)

// Row is one line of the timeline, in the order of the operations.
type Row struct {
	Kind      RowKind  `json:"kind"`
	First     uint64   `json:"first"` // its operations
	Last      uint64   `json:"last"`
	Step      int      `json:"step"`
	At        int      `json:"at"` // the current step when it was made
	Parent    int      `json:"parent"`
	OnPath    bool     `json:"on_path"` // the step belongs to the current path
	Compacted bool     `json:"folded"`
	Commit    string   `json:"commit,omitempty"`
	Tokens    int      `json:"tokens,omitempty"`
	Text      string   `json:"text"`
	Jump      *Jump    `json:"jump,omitempty"`  // of a jump that was made
	Block     bool     `json:"block,omitempty"` // of a pass: it put a block into the context
	Cards     []string `json:"cards,omitempty"` // ids of the cards a pass wrote or a recall showed
	// Changed is how many files a step changed, Paths the first of them.
	Changed int      `json:"changed,omitempty"`
	Paths   []string `json:"paths,omitempty"`
	// Icon and Short are those of the operation's Line, for drawings.
	Icon  string `json:"-"`
	Short string `json:"-"`
	room  bool   // a pass that compacts a full context
}

// Jump is where a jump went, and why.
type Jump struct {
	From     int    `json:"from"`
	To       int    `json:"to"`
	Backward bool   `json:"backward"`
	Reason   string `json:"reason,omitempty"`
	By       string `json:"by,omitempty"`
}

// Request is one request to the model, and the limits in force for it.
type Request struct {
	Seq    uint64 `json:"seq"`
	Step   int    `json:"step"`
	Tokens int    `json:"tokens"`           // of the prompt, as estimated
	EAS    int    `json:"eas"`              // effective attention span, tokens
	Window int    `json:"window,omitempty"` // advertised, tokens; 0: unknown
}

// Builder makes a task's timeline from its operations, one at a time. The zero
// Builder is the timeline of an empty stream. It is not safe for concurrent
// use.
type Builder struct {
	state    *state.State // an outline; nil before the first operation
	rows     []Row
	requests []Request
	calls    []string           // of the step under way
	asks     map[string]op.Call // the calls of the last reply, by id, with the arguments that the user edited
	open     []string           // ids of those that have not returned
	begun    uint64             // the first operation that may be the next step's own
	asked    int                // the number of rows when the pending jump was requested
	intended *op.JumpIntended
}

// State returns the task's state after the operations added so far, without its context. It is
// shared: it must not be changed, and is valid until the next Add.
func (b *Builder) State() *state.State {
	if b.state == nil {
		b.state = state.NewOutline()
	}
	return b.state
}

// Rows counts the rows that the operations added so far have made.
func (b *Builder) Rows() int { return len(b.rows) }

// Requests returns the requests to the model so far. The list is shared: it must not be
// changed.
func (b *Builder) Requests() []Request { return b.requests }

// Add applies the next operation. After an error, which means that it cannot follow the
// earlier ones, the Builder must not be used.
func (b *Builder) Add(o op.Op) error {
	at := b.State().Current
	if err := state.Fold(b.state, o); err != nil {
		return err
	}
	row := Row{First: o.Seq, Last: o.Seq, Step: o.Step, At: at}
	switch body := o.Body.(type) {
	case *op.ModelAsked:
		b.requests = append(b.requests, Request{Seq: o.Seq, Step: o.Step, Tokens: body.Tokens, EAS: b.state.Model.EAS,
			Window: b.state.Model.Window})
	case *op.ModelReplied:
		if len(body.Calls) == 0 {
			b.calls = append(b.calls, answer(body))
		}
		b.asks, b.open = make(map[string]op.Call, len(body.Calls)), nil
		for _, c := range body.Calls {
			b.asks[c.ID], b.open = c, append(b.open, c.ID)
		}
	case *op.ApprovalDecided:
		applyEdit(b.asks, body)
	case *op.ToolReturned:
		b.open = slices.DeleteFunc(b.open, func(id string) bool { return id == body.Call })
		call := b.asks[body.Call]
		call.Name = body.Name
		b.calls = append(b.calls, tool.Display(call, b.state.Opened.Dir)+CallEnd(body))
	case *op.WorldSaved:
		b.rows = append(b.rows, b.step(o, body))
		b.calls, b.begun = nil, o.Seq+1
	case *op.JumpRequested:
		b.asked = len(b.rows)
	case *op.JumpIntended:
		b.intended = body
	case *op.JumpDone:
		row.Jump = &Jump{From: body.From, To: body.To, Backward: body.Backward}
		if b.intended != nil {
			row.Jump.Reason, row.Jump.By = b.intended.Reason, b.intended.By
		}
		b.intended = nil
		b.add(row, RowJump, o)
	case *op.JumpDropped:
		// A pass is made before its jump; without the jump it has no effect.
		withdraw(b.rows[b.asked:])
		b.add(row, RowJump, o)
	default:
		b.event(row, o)
	}
	return nil
}

// applyEdit replaces a call's arguments by those that the user edited.
func applyEdit(calls map[string]op.Call, b *op.ApprovalDecided) {
	if c, ok := calls[b.Call]; ok && b.Args != "" {
		c.Args = b.Args
		calls[b.Call] = c
	}
}

// answer names an answer, or a checkpoint, by its first words.
func answer(b *op.ModelReplied) string {
	name := "answer"
	if b.Finish == op.FinishCheckpoint {
		name = "checkpoint"
	}
	words := []rune(oneLine(strings.NewReplacer("**", "", "`", "").Replace(b.Text)))
	if len(words) > maxAnswerRunes {
		words = append(words[:maxAnswerRunes], '…')
	}
	if len(words) == 0 {
		return name
	}
	return name + ` "` + string(words) + `"`
}

// event adds the row of something beside the steps, if it has one.
func (b *Builder) event(row Row, o op.Op) {
	switch body := o.Body.(type) {
	case *op.UserSaid:
		if o.Seq > 2 { // the request belongs to the beginning
			b.add(row, RowWords, o)
		}
	case *op.ModeSet:
		if body.Notice != "" {
			b.add(row, RowWords, o)
		}
	case *op.CardsRecalled:
		if len(body.Cards) == 0 {
			return
		}
		for _, c := range body.Cards {
			row.Cards = append(row.Cards, c.ID)
		}
		b.add(row, RowCards, o)
	case *op.PassDone:
		row.Tokens, row.Block, row.Cards, row.room = body.RangeTokens, body.Block != "", body.Cards,
			body.Trigger == op.TriggerWindow
		b.add(row, RowPass, o)
	case *op.RepairsFound:
		if len(body.Cards) > 0 {
			row.Cards = body.Cards
			b.add(row, RowPass, o)
		}
	case *op.ContextMasked:
		row.Tokens = body.Before - body.After
		b.add(row, RowMask, o)
	case *op.StrategyGiven, *op.ReflectFailed:
		b.add(row, RowStrategy, o)
	case *op.MailDelivered:
		b.add(row, RowMail, o)
	case *op.TurnEnded:
		b.add(row, RowEnd, o)
	}
}

func (b *Builder) add(row Row, kind RowKind, o op.Op) {
	line := LineOf(o, b.state.Opened.Dir)
	if row.Jump != nil && row.Jump.Reason != "" {
		line.Detail = append([]string{oneLine(row.Jump.Reason)}, line.Detail...)
	}
	row.Kind, row.Icon, row.Text, row.Short = kind, line.Icon, line.String(), line.Short
	b.rows = append(b.rows, row)
	switch kind {
	case RowJump, RowMail, RowEnd:
		b.begun = o.Seq + 1 // the next step's operations come after these
	}
}

// step returns the row of a step that has ended with a snapshot.
func (b *Builder) step(o op.Op, body *op.WorldSaved) Row {
	s := b.state.Steps.At(o.Step)
	text := strings.Join(b.calls, ", ")
	if o.Step == 0 {
		text = "beginning"
	}
	switch {
	case body.Error == "" && b.state.Opened.Origin.Imported():
		text += " (files kept by the agent)"
	case body.Error == "":
	case !b.state.Opened.Origin.Imported():
		text += " (no checkpoint: " + body.Error + ")"
	case o.Step == 0:
		text += " (imported: no checkpoint where a step names none)"
	}
	if body.Mixed != "" {
		text += " (mixed with changes of " + body.Mixed + ", which jumps keep)"
	}
	own := op.Range{First: max(b.begun, s.First), Last: o.Seq}
	return Row{Kind: RowStep, First: own.First, Last: own.Last, Step: o.Step, At: o.Step, Parent: s.Parent,
		Commit: body.Commit, Tokens: b.state.Tokens(own), Text: text,
		Changed: body.NChanged, Paths: body.Changed[:min(len(body.Changed), maxNamedChanges)]}
}

// withdraw marks passes of a jump that was not performed: their blocks are not in the context. A
// pass that compacts a full context needs no jump.
func withdraw(rows []Row) {
	for i := range rows {
		if r := &rows[i]; r.Kind == RowPass && !r.room {
			r.Text += "\n→ without effect: its jump was not made"
			r.Block, r.Short = false, "pass"
		}
	}
}

// Timeline returns the timeline of the operations added so far. The caller owns
// its lists of rows and requests.
func (b *Builder) Timeline() Timeline {
	st := b.State()
	tl := Timeline{
		ID: st.Opened.Task, Dir: st.Opened.Dir, Model: st.Model.Name, EAS: st.Model.EAS,
		Ops: st.Last, Current: st.Current, Rows: make([]Row, len(b.rows)), Requests: append([]Request{}, b.requests...),
	}
	copy(tl.Rows, b.rows)
	line, text := st.Goal.Curve()
	tl.Goal = strings.TrimSpace(line + " " + text)
	live := b.live()
	for i := range tl.Rows {
		if r := &tl.Rows[i]; r.Kind == RowStep {
			r.OnPath, r.Compacted = live[r.Step], st.Steps.At(r.Step).Compacted
		}
	}
	return tl
}

// live reports, by step, which are on the current path.
func (b *Builder) live() []bool { return b.State().Steps.PathSet(b.State().Current) }

// UnderWay returns the step that has begun and not ended, where a turn is open.
func (b *Builder) UnderWay() (steps.Step, bool) {
	st := b.State()
	if n := st.Steps.Len(); n > 0 && !st.Steps.At(n-1).Ended && st.Turn.Open {
		return st.Steps.At(n - 1), true
	}
	return steps.Step{}, false
}

// Steps counts the steps that have begun. What follows a turn's end has the number of the
// next step, which begins with the next request.
func (b *Builder) Steps() int {
	st := b.State()
	n := st.Steps.Len()
	if n > 0 && !st.Steps.At(n-1).Ended && !st.Turn.Open {
		n--
	}
	return n
}

func CallText(b *op.ToolReturned) string { return b.Name + CallEnd(b) }

// CallEnd returns how a call ended if it did not succeed, in parentheses.
func CallEnd(b *op.ToolReturned) string {
	switch {
	case b.Unknown && b.IsError:
		return " (outcome unknown)"
	case b.Unknown:
		return " (outcome not reported)"
	case notice.Halted(b) != "":
		return " (" + notice.Halted(b) + ")"
	case b.Refused:
		return " (refused)"
	case b.Exit != nil && *b.Exit != 0:
		return fmt.Sprintf(" (exit %d)", *b.Exit)
	case b.IsError:
		return " (error)"
	}
	return ""
}

// Discarded returns a function that reports whether a jump left a step, so that its changes are no
// longer in the files. It is valid until the next Add.
func (b *Builder) Discarded() func(step int) bool {
	live := b.live()
	return func(step int) bool { return step < len(live) && !live[step] && b.state.Steps.At(step).Ended }
}

func Read(h taskdir.Home, id string) (Timeline, error) {
	b := new(Builder)
	err := taskdir.EachOp(h, id, b.Add)
	if err == nil && b.State().Last == 0 {
		err = fmt.Errorf("%w: %s has an empty stream", taskdir.ErrNoTask, id)
	}
	if err != nil {
		return Timeline{}, err
	}
	return b.Timeline(), nil
}
