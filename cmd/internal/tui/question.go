//go:build unix

package tui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/editor"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/guard/command"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/tool/file"
)

// quiet is how long no key must have come before a question takes one: a user who
// types when it appears must not answer it.
const quiet = 400 * time.Millisecond

type askKind int

const (
	askCall  askKind = iota // whether a call may run
	askText                 // a line of text
	askTrust                // yes or no
)

// askState is which part of a question is being answered.
type askState int

const (
	askKey    askState = iota // one key
	askAll                    // the second key of "everything"
	askReason                 // why not
	askEdit                   // the command, or the arguments
	askLine                   // an answer in words
)

// question is one that waits for the user. What was being typed stays in the editor;
// a question has a line of its own.
type question struct {
	kind    askKind
	call    runtime.Question
	text    string
	changes []file.Change
	answer  chan runtime.Answer

	state askState
	armed time.Time // from when on a key is an answer
	help  bool
	line  editor.Editor
	note  string // why the last key was no answer
}

const approveHelp = `  y  run this call once
  t  run this call, and exactly the same one again in this task, without a question
  a  run everything in this task without a question; asks once more
  n  do not run it; you may say why, and the model is told
  e  edit the command or the arguments before it runs
  Esc or Ctrl-C ends the turn`

// open prepares a question that has come to the front.
func (q *question) open(now time.Time) {
	q.armed = now.Add(quiet)
	if q.kind == askText {
		q.ask(askLine, "")
	}
}

// ask goes on with a line.
func (q *question) ask(state askState, text string) {
	q.state, q.note = state, ""
	q.line = editor.New(&editor.History{}, "", nil)
	q.line.Edit(text)
}

// press handles a key and reports whether the question is answered.
func (q *question) press(k tea.KeyPressMsg) bool {
	if q.state == askReason || q.state == askEdit || q.state == askLine {
		return q.pressLine(k)
	}
	name := strings.ToLower(k.Text)
	q.note = ""
	if q.state == askAll {
		if q.state = askKey; name == "a" {
			return q.say(runtime.Answer{Allow: true, ForTask: true})
		}
		return false
	}
	if q.kind == askTrust && name != "y" && name != "n" {
		name = "?"
	}
	switch name {
	case "y":
		return q.say(runtime.Answer{Allow: true})
	case "t":
		return q.say(runtime.Answer{Allow: true, Same: true})
	case "a":
		q.state = askAll
	case "n":
		if q.kind == askTrust {
			return q.say(runtime.Answer{})
		}
		q.ask(askReason, "")
	case "e":
		q.ask(askEdit, q.editable())
	case "?":
		q.help = !q.help
	default:
		q.note = "that key is no answer"
	}
	return false
}

func (q *question) pressLine(k tea.KeyPressMsg) bool {
	switch k.String() {
	case "esc":
		if q.state != askLine {
			q.state = askKey
			return false
		}
	case "enter":
		text := strings.TrimSpace(q.line.Text())
		if q.state == askEdit {
			args, err := q.edited(text)
			if err != nil {
				q.note = err.Error()
				return false
			}
			return q.say(runtime.Answer{Args: args})
		}
		return q.say(runtime.Answer{Feedback: text})
	default:
		q.line.Press(k)
	}
	return false
}

func (q *question) say(a runtime.Answer) bool {
	q.answer <- a
	return true
}

// command is the call's command line; empty where it has none.
func (q *question) command() string {
	var args struct {
		Command string `json:"command"`
	}
	_ = json.Unmarshal([]byte(q.call.Args), &args) // arguments of another form have none
	return args.Command
}

func (q *question) editable() string {
	if c := q.command(); c != "" {
		return c
	}
	return op.CanonicalArgs(q.call.Args)
}

// edited returns the arguments with what the user made of them.
func (q *question) edited(text string) (string, error) {
	if q.command() == "" {
		return text, nil
	}
	var args map[string]any
	if err := json.Unmarshal([]byte(q.call.Args), &args); err != nil {
		return "", fmt.Errorf("the arguments cannot be edited: %w", err)
	}
	args["command"] = text
	data, err := json.Marshal(args)
	return op.CanonicalArgs(string(data)), err
}

// view renders the question; height bounds the lines of a diff.
func (q *question) view(width, height int, now time.Time) (lines []string, cursor *tea.Cursor) {
	rule := paint.Yellow.Render(strings.Repeat("─", max(width, 1)))
	lines = append(lines, rule)
	lines = append(lines, q.body(width, height)...)
	if q.help {
		lines = append(lines, paint.Wrap(approveHelp, width)...)
	}
	if q.note != "" {
		lines = append(lines, paint.Wrap(paint.Yellow.Render("  "+clean(q.note)), width)...)
	}
	prompt := ""
	switch q.state {
	case askKey:
		prompt = "y once · t this in the task · a everything · n no · e edit · ? help"
		if q.kind == askTrust {
			prompt = "y approve · n not"
		}
		if now.Before(q.armed) {
			prompt = "…"
		}
		return append(lines, paint.Wrap(paint.Bold.Render(prompt), width)...), nil
	case askAll:
		return append(lines, paint.Wrap(paint.Yellow.Render("everything in this task then runs without a question: a again to confirm, any other key goes back"), width)...), nil
	case askReason:
		prompt = "the reason, for the model (Enter: none, Esc goes back)"
	case askEdit:
		prompt = "edit, Enter when done, Esc goes back"
	case askLine:
		prompt = "your answer (empty ends the turn)"
	}
	lines = append(lines, paint.Wrap(paint.Bold.Render(prompt), width)...)
	text, cursor := q.line.View(width)
	if cursor != nil {
		cursor.Y += len(lines)
	}
	return append(lines, strings.Split(text, "\n")...), cursor
}

// body is what the question is about.
func (q *question) body(width, height int) []string {
	if q.kind != askCall {
		return paint.Wrap(paint.Yellow.Render("? ")+clean(q.text), width)
	}
	lines := []string{paint.Cut(paint.Yellow.Render("? ")+paint.Bold.Render(clean(q.call.Name)), width)}
	switch c := q.command(); {
	case len(q.changes) > 0:
		for _, change := range q.changes {
			for _, l := range paint.Change(change, width-2, max(6, min(paint.MaxDiffLines, height-10))) {
				lines = append(lines, "  "+l)
			}
		}
	case c != "":
		for i, l := range strings.Split(clean(c), "\n") {
			mark := "  $ "
			if i > 0 {
				mark = "    "
			}
			for _, part := range paint.Wrap(l, width-4) {
				lines, mark = append(lines, mark+part), "    "
			}
		}
		lines = append(lines, paint.Wrap(paint.Faint.Render("  "+why(c, q.call.Why)), width)...)
	default:
		for _, l := range strings.Split(term.PrettyArgs(q.call.Args), "\n") {
			lines = append(lines, paint.Wrap(clean(l), width)...)
		}
	}
	if q.call.Note != "" {
		lines = append(lines, paint.Wrap(paint.Yellow.Render("  "+clean(q.call.Note)), width)...)
	}
	return lines[:min(len(lines), max(8, height-6))]
}

// why says which programs a command line runs, and what asks about it.
func why(line, by string) string {
	var names []string
	parsed, err := command.Parse(line)
	for _, c := range parsed {
		if len(c.Words) > 0 && !slices.Contains(names, c.Words[0].Text) {
			names = append(names, c.Words[0].Text)
		}
	}
	text := "runs " + strings.Join(names, ", ")
	if hidden := command.Hidden(line); hidden != "" {
		text = "cannot be read with certainty: " + hidden
	} else if err != nil || len(names) == 0 {
		text = "cannot be read as a command line"
	}
	switch kind, what, _ := strings.Cut(by, ":"); kind {
	case "mode":
		text += " · asked because approval is " + what
	case "rule":
		text += " · asked by the rule " + what
	}
	return clean(text)
}
