package term

import (
	"fmt"
	"strings"

	"charm.land/lipgloss/v2"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator"
)

// Timeline is a task's two timelines as data: the line of operations and the
// tree of steps. It is what `timeline --json` prints.
type Timeline struct {
	ID      string `json:"id"`
	Dir     string `json:"dir"`
	Model   string `json:"model"`
	EAS     int    `json:"eas"`
	Ops     uint64 `json:"ops"`
	Current int    `json:"current"`
	Rows    []Row  `json:"rows"`
}

// RowKind says what a row of the timeline stands for.
type RowKind string

// The kinds of rows.
const (
	RowStep RowKind = "step"
	RowPass RowKind = "pass"
	RowMask RowKind = "mask"
	// RowStrategy is the Reflect-Agent's answer, or that there is none.
	RowStrategy RowKind = "strategy"
	RowJump     RowKind = "jump"
	RowMail     RowKind = "mail"
	RowCards    RowKind = "cards"
	RowWords    RowKind = "words"
	RowEnd      RowKind = "end"
)

// Row is one line of the timeline, in the order of the operations.
type Row struct {
	Kind   RowKind `json:"kind"`
	First  uint64  `json:"first"` // operations it stands for
	Last   uint64  `json:"last"`
	Step   int     `json:"step"`
	Parent int     `json:"parent"`
	OnPath bool    `json:"on_path"` // the step belongs to the current path
	Folded bool    `json:"folded"`
	Commit string  `json:"commit,omitempty"`
	Tokens int     `json:"tokens,omitempty"`
	Text   string  `json:"text"`
	room   bool    // a pass for want of room
}

// Build makes the timeline of a task from its state and its operations.
func Build(st *orchestrator.State, ops []op.Op) Timeline {
	tl := Timeline{
		ID: st.Opened.Task, Dir: st.Opened.Dir, Model: st.Model, EAS: st.EAS,
		Ops: st.Last, Current: st.Current,
	}
	var calls []string
	begun, asked := uint64(1), 0
	for _, o := range ops {
		row := Row{First: o.Seq, Last: o.Seq, Step: o.Step}
		switch b := o.Body.(type) {
		case *op.ModelReplied:
			if len(b.Calls) == 0 {
				calls = append(calls, "answer")
			}
			continue
		case *op.ToolReturned:
			calls = append(calls, callText(b))
			continue
		case *op.WorldSaved:
			row = stepRow(st, o, b, begun, calls)
			calls, begun = nil, o.Seq+1
		case *op.UserSaid:
			if o.Seq <= 2 {
				continue // the request: the beginning stands for it
			}
			row.Kind, row.Text = RowWords, string(b.Source)+": "+strings.Join(strings.Fields(b.Text), " ")
		case *op.CardsRecalled:
			if len(b.Cards) == 0 {
				continue
			}
			var topics []string
			for _, c := range b.Cards {
				topics = append(topics, c.Topic)
			}
			row.Kind, row.Text = RowCards, fmt.Sprintf("recalled %d card(s): %s", len(b.Cards), strings.Join(topics, "; "))
		case *op.PassDone:
			row.Kind, row.Tokens, row.Text = RowPass, b.RangeTokens, passText(b, o.Tok)
			row.room = b.Trigger == "window"
		case *op.ContextMasked:
			row.Kind, row.Tokens, row.Text = RowMask, b.Before-b.After, maskedText(b)
		case *op.StrategyGiven, *op.ReflectFailed:
			row.Kind, row.Text = RowStrategy, reflectText(b)
		case *op.JumpDone:
			begun = o.Seq + 1 // the next step's operations come after the jump's
			row.Kind, row.Text = RowJump, fmt.Sprintf("jump %d → %d, %d file(s) changed", b.From, b.To, b.NReverted)
		case *op.MailDelivered:
			begun = o.Seq + 1
			row.Kind, row.Text = RowMail, mailText(b)
		case *op.JumpRequested:
			asked = len(tl.Rows)
			continue
		case *op.JumpDropped:
			begun = o.Seq + 1
			tl.withdraw(asked)
			row.Kind, row.Text = RowJump, fmt.Sprintf("jump to %d not made: %s", b.To, b.Why)
		case *op.TurnEnded:
			begun = o.Seq + 1
			row.Kind, row.Text = RowEnd, strings.TrimSuffix(b.Reason+": "+b.Detail, ": ")
		default:
			continue
		}
		tl.Rows = append(tl.Rows, row)
	}
	return tl
}

// stepRow is the row of a step that has ended with a snapshot. begun is the
// first operation that may be its own.
func stepRow(st *orchestrator.State, o op.Op, b *op.WorldSaved, begun uint64, calls []string) Row {
	s := st.Steps[o.Step]
	text := strings.Join(calls, ", ")
	if o.Step == 0 {
		text = "beginning"
	}
	if b.Error != "" {
		text += " (no checkpoint: " + b.Error + ")"
	}
	own := op.Range{First: max(begun, s.First), Last: o.Seq}
	return Row{Kind: RowStep, First: own.First, Last: own.Last, Step: o.Step, Parent: s.Parent,
		OnPath: st.OnPath(o.Step, st.Current), Folded: s.Folded, Commit: b.Commit, Tokens: st.Tokens(own), Text: text}
}

// withdraw marks the passes from row on: they were made for a jump that was
// not made, and nothing stands in the context for them. A pass for want of room
// needs no jump.
func (tl *Timeline) withdraw(from int) {
	for i := from; i < len(tl.Rows); i++ {
		if r := &tl.Rows[i]; r.Kind == RowPass && !r.room {
			r.Text += "\n→ without effect: its jump was not made"
		}
	}
}

func callText(b *op.ToolReturned) string {
	text := b.Name
	switch {
	case b.Unknown:
		text += " (outcome unknown)"
	case b.Refused:
		text += " (refused)"
	case b.Exit != nil && *b.Exit != 0:
		text += fmt.Sprintf(" (exit %d)", *b.Exit)
	case b.IsError:
		text += " (error)"
	}
	return text
}

// reflectText says how far a reflection has come.
func reflectText(b op.Body) string {
	switch b := b.(type) {
	case *op.ReflectAsked:
		return fmt.Sprintf("%d jumps back to step %d did not help: asking the Reflect-Agent (%s)", b.Jumps, b.To, b.Model)
	case *op.ReflectFailed:
		return "no strategy: " + b.Why
	case *op.StrategyGiven:
		text := "strategy: " + b.Diagnosis
		for _, p := range b.Plan {
			text += "\n→ " + p
		}
		if len(b.Plan) == 0 {
			text += "\n→ asks the person: " + b.Question
		}
		return text
	}
	return ""
}

// maskedText says what was masked, and why.
func maskedText(b *op.ContextMasked) string {
	why := fmt.Sprintf("more than %d", b.Limit)
	if b.Why == "overflow" {
		why = "the provider refused them"
	}
	return fmt.Sprintf("%d result(s) masked: the context had %d tokens (%s), now %d", len(b.Results), b.Before, why, b.After)
}

// mailText says where a D-Mail went. What it says is for the agent.
func mailText(b *op.MailDelivered) string {
	return fmt.Sprintf("D-Mail from step %d to checkpoint %d, no file moved", b.From, b.To)
}

func passText(b *op.PassDone, blockTokens int) string {
	if b.Trigger == "mail" {
		text := fmt.Sprintf("D-Mail: %d messages of %d tokens became one of %d: ", b.MessagesRemoved, b.RangeTokens, blockTokens)
		if blockTokens > b.RangeTokens {
			return text + fmt.Sprintf("%d more", blockTokens-b.RangeTokens)
		}
		return text + fmt.Sprintf("%d saved", b.RangeTokens-blockTokens)
	}
	text := fmt.Sprintf("%d tokens discarded", b.RangeTokens)
	switch b.Trigger {
	case "window":
		text = fmt.Sprintf("%d tokens of old steps folded for want of room", b.RangeTokens)
	case "end":
		text = fmt.Sprintf("%d tokens of paths that were left, read at the end", b.RangeTokens)
	case "jump", "cumulative":
		if b.RangeTokens > b.EAS {
			text += fmt.Sprintf(" > EAS %d", b.EAS)
		} else { // one span of several
			text += fmt.Sprintf(", with other spans more than EAS %d", b.EAS)
		}
	default:
		text += ", " + b.Trigger
	}
	if b.Block != "" {
		text += fmt.Sprintf("\n→ [ANAMNESIS_BLOCK] %d tokens by the %s", blockTokens, b.Writer)
	}
	for _, id := range b.Cards {
		text += "\n→ card " + id
	}
	for _, why := range b.NotWritten {
		text += "\n→ card not written: " + why
	}
	return text
}

var (
	styleFaint = lipgloss.NewStyle().Faint(true)
	styleHead  = lipgloss.NewStyle().Bold(true)
	styleJump  = lipgloss.NewStyle().Foreground(lipgloss.Color("3"))
	stylePass  = lipgloss.NewStyle().Foreground(lipgloss.Color("5"))
	styleCard  = lipgloss.NewStyle().Foreground(lipgloss.Color("6"))
	styleStep  = lipgloss.NewStyle().Foreground(lipgloss.Color("2"))
)

// Render draws the timeline, one row a line, at most width columns: on the
// left the line of operations, on the right the tree of steps. Steps on the
// current path are filled, abandoned ones hollow and set off.
func (tl Timeline) Render(width int) string {
	lines := []string{
		styleHead.Render(Line(tl.ID, width)),
		styleFaint.Render(Line(fmt.Sprintf("%s · EAS %d · %d ops · at step %d", tl.Model, tl.EAS, tl.Ops, tl.Current), width)),
		styleFaint.Render(fmt.Sprintf("%*s  steps", opsColumn-2, "ops")),
	}
	for i, r := range tl.Rows {
		lines = append(lines, tl.row(i, r, width))
	}
	return strings.Join(lines, "\n")
}

const opsColumn = 10 // width of the column of operations, with its gap

func (tl Timeline) row(i int, r Row, width int) string {
	ops := fmt.Sprint(op.Range{First: r.First, Last: r.Last})
	left := fmt.Sprintf("%*s  ", opsColumn-2, ops)
	glyph, style := "│ ", styleFaint
	switch r.Kind {
	case RowStep:
		glyph, style = "● ", styleStep
		if !r.OnPath {
			glyph, style = "│ ○ ", styleFaint
		}
		if i > 0 && tl.branches(i) {
			glyph = strings.Replace(glyph, "│ ○", "├─○", 1)
		}
	case RowPass:
		glyph, style = "│ ◆ ", stylePass
	case RowMask:
		glyph, style = "│ ◇ ", styleFaint
	case RowStrategy:
		glyph, style = "│ ✳ ", stylePass
	case RowJump:
		glyph, style = "│ ↩ ", styleJump
	case RowMail:
		glyph, style = "│ ✉ ", styleJump
	case RowCards:
		glyph, style = "│ ✦ ", styleCard
	case RowWords:
		glyph, style = "│ » ", styleHead
	case RowEnd:
		glyph, style = "■ ", styleHead
	}
	text := r.Text
	if r.Kind == RowStep {
		text = fmt.Sprintf("%d  %s", r.Step, r.Text)
	}
	room := max(width-opsColumn-lipgloss.Width(glyph), 8)
	var lines []string
	for k, part := range strings.Split(text, "\n") {
		if k > 0 { // further lines of a row stand below its text
			left = strings.Repeat(" ", opsColumn)
			glyph = "│" + strings.Repeat(" ", lipgloss.Width(glyph)-1)
		}
		lines = append(lines, styleFaint.Render(left)+style.Render(glyph+Line(part, room)))
	}
	return strings.Join(lines, "\n")
}

// branches says that row i is the first step of an abandoned branch.
func (tl Timeline) branches(i int) bool {
	for k := i - 1; k >= 0; k-- {
		if tl.Rows[k].Kind == RowStep {
			return tl.Rows[k].OnPath
		}
	}
	return false
}

// SideBySide sets two drawings beside each other, or one below the other
// where the terminal is too narrow for both.
func SideBySide(width int, draw ...func(width int) string) string {
	const gap, narrowest = 3, 40
	each := (width - gap*(len(draw)-1)) / max(len(draw), 1)
	if each < narrowest {
		var parts []string
		for _, d := range draw {
			parts = append(parts, d(width))
		}
		return strings.Join(parts, "\n\n")
	}
	var cols []string
	for i, d := range draw {
		col := lipgloss.NewStyle().Width(each).Render(d(each))
		if i > 0 {
			cols = append(cols, strings.Repeat(" ", gap))
		}
		cols = append(cols, col)
	}
	return lipgloss.JoinHorizontal(lipgloss.Top, cols...)
}
