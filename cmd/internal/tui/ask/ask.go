//go:build unix

// Package ask is the modal question of the terminal: whether a call may run, a line of
// text, or yes or no.
package ask

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/orchestrator/gate"
	"anamnesis/orchestrator/tool/file"
)

// A key counts as an answer once the question has been shown for the time quiet and nothing was typed
// for the time typing: a user who is typing when it appears does not answer it by accident.
const (
	quiet  = 400 * time.Millisecond
	typing = time.Second
)

// HoldTime is how long a key that lets a call run waits for another one, which would make both a word.
// Between two keys of a word, typists take 238 ms on average, with a standard deviation of 112 ms
// (Dhakal et al., "Observations on Typing from 136 Million Keystrokes", CHI 2018).
const HoldTime = 500 * time.Millisecond

// Kind says what a question asks for.
type Kind int

const (
	OfCall  Kind = iota // whether a call may run
	OfText              // a line of text
	OfTrust             // yes or no
)

// state is the part of a question that is being answered.
type state int

const (
	byKey    state = iota // one key
	byReason              // why not
	byEdit                // the command, or the arguments
	byLine                // an answer in words
)

// Question is one that waits for the user. What was being typed stays in the editor;
// a question has a line of its own. But for Answer, only the screen's goroutine uses it.
type Question struct {
	Kind    Kind
	Call    gate.Question
	Text    string
	Changes []file.Change    // what the call is about to do to files
	Answer  chan gate.Answer // buffered for one
	Draft   bool             // the line holds text, and keys go to it
	Waiting bool             // an answer, until HoldTime has passed
	Outside bool             // the call is to be edited in the user's editor

	at    state
	armed time.Time // when keys begin to count as answers
	help  bool
	line  editor.Editor
	note  string // why the last key was no answer

	whole []string // everything that it is about, for a width
	wide  int
	part  bool // the screen shows a part of it
}

// approveHelp explains the answers to a question about a call.
const approveHelp = `y  run this call once
t  run it, and exactly this call again in this task, without a question
p  run it, and others that fit the pattern in this task, without a question; rules that ask or refuse still hold
w  run it, and exactly this call again in this directory, in every task, unasked; 'anamnesis rules' takes it back
n  do not run it; you may give the model a reason
e  edit the command, or the file or patch in $EDITOR; you are asked again with the result`

// trustHelp explains the answers to a question about what a project brings.
const trustHelp = `y  approve it as it is now; you are asked again when it changes
n  do not use it; you are asked again the next time`

const keysHelp = `
v  print everything above the question, where only a part of it is shown
Esc or Ctrl-C ends the turn`

// Open prepares a question that is shown now, and reports whether it was not shown before. A text
// was typed last at typed.
func (q *Question) Open(now, typed time.Time) bool {
	if !q.armed.IsZero() {
		return false
	}
	if q.armed = now.Add(quiet); q.armed.Before(typed.Add(typing)) {
		q.armed = typed.Add(typing)
	}
	if q.Kind == OfText {
		q.ask(byLine, "")
	}
	return true
}

// Armed reports whether a key is an answer now. Earlier keys are typed into the line and
// delay it.
func (q *Question) Armed(now time.Time) bool { return !now.Before(q.armed) }

// PutOff delays the question until no key has come for a while.
func (q *Question) PutOff(now time.Time) { q.armed = now.Add(typing) }

// LetsRun reports whether a key would let the call run at once.
func (q *Question) LetsRun(k tea.KeyPressMsg) bool {
	return q.Kind == OfCall && q.at == byKey && slices.Contains([]string{"y", "t", "p", "w"}, strings.ToLower(k.Text))
}

// Handles reports whether a key belongs to the question: a letter that is no answer does not, nor does
// a key that changes a draft.
func (q *Question) Handles(k tea.KeyPressMsg) bool {
	if q.at != byKey {
		return true
	}
	return !q.Draft && (k.Text == "" || strings.Contains("ytpwne?", strings.ToLower(k.Text)) || q.Whole(k) != nil)
}

// Whole returns everything that the question is about if a key asks for it.
func (q *Question) Whole(k tea.KeyPressMsg) []string {
	if q.at != byKey || !q.part || strings.ToLower(k.Text) != "v" {
		return nil
	}
	return q.whole
}

// Interruptible reports whether Esc ends the turn, and not only what is being entered.
func (q *Question) Interruptible() bool { return q.at == byKey || q.at == byLine }

// Paste inserts a text where words are entered, and reports whether they are.
func (q *Question) Paste(text string, now time.Time) bool {
	if !q.Armed(now) || q.at == byKey {
		return false
	}
	q.line.Paste(text)
	return true
}

// ask continues with a line of text.
func (q *Question) ask(at state, text string) {
	q.at, q.note = at, ""
	q.line = editor.New(&editor.History{}, "", nil)
	q.line.Edit(text)
}

// Press handles a key and reports whether the question is answered.
func (q *Question) Press(k tea.KeyPressMsg) bool {
	if q.at != byKey {
		return q.pressLine(k)
	}
	name := strings.ToLower(k.Text)
	q.note = ""
	if q.Kind == OfTrust && name != "y" && name != "n" {
		name = "?"
	}
	switch name {
	case "y":
		return q.say(gate.Answer{Allow: true})
	case "t":
		return q.say(gate.Answer{Allow: true, Same: true})
	case "w":
		return q.say(gate.Answer{Allow: true, Always: true})
	case "p":
		if len(q.Call.Like) > 0 {
			return q.say(gate.Answer{Allow: true, Like: true})
		}
		q.note = "no pattern fits this call; t allows exactly this in the task"
	case "n":
		if q.Kind == OfTrust {
			return q.say(gate.Answer{})
		}
		q.ask(byReason, "")
	case "e":
		if name, text := term.Editable(q.Call.Args, "command"); name != "" && !strings.Contains(text, "\n") {
			q.ask(byEdit, text)
		} else {
			q.Outside = true
		}
	case "?":
		q.help = !q.help
	default:
		q.note = "that key is no answer"
	}
	return false
}

func (q *Question) pressLine(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "esc":
		if q.at != byLine {
			q.at = byKey
			return false
		}
	case "enter":
		text := strings.TrimSpace(q.line.Text())
		if q.at == byEdit {
			return q.Edited("command", text, nil)
		}
		if text == "" && q.at == byLine {
			q.note = "an empty line is no answer; Esc ends the turn"
			return false
		}
		return q.say(gate.Answer{Text: text})
	default:
		q.line.Press(k)
	}
	return false
}

// Edited answers with a text that the user edited, unless editing failed or the call cannot have it.
func (q *Question) Edited(name, text string, err error) bool {
	args := ""
	if err == nil {
		args, err = term.Edited(q.Call.Args, name, text)
	}
	if err != nil {
		q.note = err.Error()
		return false
	}
	return q.say(gate.Answer{Args: args})
}

func (q *Question) say(a gate.Answer) bool {
	q.Answer <- a
	return true
}

// View renders the question; height bounds the lines of a diff.
func (q *Question) View(width, height int, now time.Time) (lines []string, cursor *tea.Cursor) {
	rule := paint.Yellow.Render(strings.Repeat("─", max(width, 1)))
	lines = append(lines, rule)
	shown := q.body(width, height)
	if q.wide != width {
		q.whole, q.wide = q.body(width, 1<<20), width
	}
	q.part = !slices.Equal(shown, q.whole)
	lines = append(lines, shown...)
	if q.help {
		help := approveHelp
		if q.Kind == OfTrust {
			help = trustHelp
		}
		for l := range strings.SplitSeq(help+keysHelp, "\n") {
			for i, part := range paint.Wrap(l, width-5) {
				lines = append(lines, "  "+strings.Repeat(" ", 3*min(i, 1))+part)
			}
		}
	}
	if q.note != "" {
		lines = append(lines, indented(paint.Yellow, q.note, width)...)
	}
	if q.Waiting {
		return atEnd(append(lines, offered([]string{"… the call runs in a moment", "Enter now", "Esc ends the turn",
			"another key makes it text"}, width)...))
	}
	prompt := ""
	switch q.at {
	case byKey:
		answers := []string{"y once", "t this in the task", "w always here", "n no", "e edit", "? help"}
		if width < 40 { // the others go first
			answers = slices.Delete(answers, 2, 3)
		}
		if like := term.Like(q.Call); like != "" {
			answers = slices.Insert(answers, 2, "p "+like)
		}
		if q.part {
			answers = slices.Insert(answers, len(answers)-1, "v view all")
		}
		if q.Kind == OfTrust {
			answers = []string{"y approve", "n not"}
		}
		switch {
		case q.Draft:
			answers = []string{"Enter sends your line", "Ctrl-U clears it", "Esc ends the turn"}
		case now.Before(q.armed):
			answers[len(answers)-1] = "…"
		}
		return atEnd(append(lines, offered(answers, width)...))
	case byReason:
		prompt = "the reason, for the model (Enter: none, Esc goes back)"
	case byEdit:
		prompt = "edit; Enter asks again with this, Esc goes back"
	case byLine:
		prompt = "your answer (Esc ends the turn)"
	}
	lines = append(lines, paint.Wrap(paint.Bold.Render(prompt), width)...)
	text, cursor := q.line.View(width)
	if cursor != nil {
		cursor.Y += len(lines)
	}
	return append(lines, strings.Split(text, "\n")...), cursor
}

// indented wraps a remark about a call or an answer.
func indented(style lipgloss.Style, text string, width int) (lines []string) {
	for _, l := range paint.Wrap(term.Clean(text), width-2) {
		lines = append(lines, style.Render("  "+l))
	}
	return lines
}

// offered lays out answers, each whole on one line, with its key set off.
func offered(answers []string, width int) []string {
	for i, a := range answers {
		key, what, _ := strings.Cut(a, " ")
		answers[i] = strings.TrimSuffix(paint.Bold.Render(key)+" "+what, " ")
	}
	return paint.Flow(answers, width)
}

// atEnd returns lines with the cursor after them.
func atEnd(lines []string) ([]string, *tea.Cursor) {
	return lines, tea.NewCursor(lipgloss.Width(lines[len(lines)-1]), len(lines)-1)
}

// body returns the lines that show what the question is about.
func (q *Question) body(width, height int) []string {
	if q.Kind != OfCall {
		return paint.Wrap(paint.Yellow.Render("? ")+term.Clean(q.Text), width)
	}
	lines := []string{paint.Cut(paint.Yellow.Render("? ")+paint.Bold.Render(term.QuestionTitle(q.Call)), width)}
	var note []string
	if q.Call.Note != "" {
		note = indented(paint.Yellow, q.Call.Note, width)
	}
	switch c := term.Command(q.Call.Args); {
	case len(q.Changes) > 0:
		limit := min(height-10, (height-6-len(note))/len(q.Changes)-3) // a cut diff counts the lines that it leaves out
		for _, change := range q.Changes {
			for _, l := range paint.Change(change, width-2, max(2, limit)) {
				lines = append(lines, "  "+l)
			}
		}
	case c != "":
		for i, l := range strings.Split(term.Clean(c), "\n") {
			mark := "  $ "
			if i > 0 {
				mark = "    "
			}
			for _, part := range paint.Wrap(l, width-4) {
				lines, mark = append(lines, mark+part), "    "
			}
		}
	default:
		for l := range strings.SplitSeq(term.PrettyArgs(q.Call.Args), "\n") {
			lines = append(lines, paint.Wrap(term.Clean(l), width)...)
		}
	}
	remarks := append(indented(paint.Faint, term.QuestionReason(q.Call), width), note...)
	if room := max(4, height-6-len(remarks)); len(lines) > room {
		rest := quote.Number(len(lines)-room+1, "more line")
		lines = append(lines[:room-1], indented(paint.Yellow, "… "+rest+", not shown; v shows everything", width)...)
	}
	return append(lines, remarks...)
}
