package term

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mattn/go-runewidth"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/gate"
)

// maxLineBytes bounds a line that is typed.
const maxLineBytes = 1 << 20

// Lines shares a plain terminal between lines that steer a task and questions that
// are answered with a line: for terminals that cannot be drawn on, and for screen
// readers. Its methods may be called from any goroutine.
type Lines struct {
	out io.Writer

	asking sync.Mutex // held while a question is open

	mu     sync.Mutex
	say    func(string)
	early  []string    // lines typed before there was a say
	answer chan string // of the question that waits for a line, or nil
	edit   edit
	ended  chan struct{}
}

// edit is what a call is about to change in files, as lines.
type edit struct {
	call  string
	lines []string
}

// Editing records what a call will change, for the question about it.
func (l *Lines) Editing(call string, lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.edit = edit{call, lines}
}

// about describes a call: what it changes in files, or its arguments.
func (l *Lines) about(c op.Call) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.edit.call == c.ID && len(l.edit.lines) > 0 {
		return "  " + strings.Join(l.edit.lines, "\n  ")
	}
	return Clean(PrettyArgs(c.Args))
}

// NewLines reads in until it ends: a read cannot be canceled.
func NewLines(in io.Reader, out io.Writer) *Lines {
	l := &Lines{out: out, ended: make(chan struct{})}
	go l.read(in)
	return l
}

func (l *Lines) read(in io.Reader) {
	defer close(l.ended)
	s := bufio.NewScanner(in)
	s.Buffer(nil, maxLineBytes)
	for s.Scan() {
		text := strings.TrimSpace(s.Text())
		l.mu.Lock()
		if l.answer == nil {
			if how := l.steer(text); Slash(text) != "" {
				fmt.Fprintln(l.out, "  ("+how+")")
			}
		} else { // one line answers; the channel has room for it
			l.answer <- text
			l.answer = nil
		}
		l.mu.Unlock()
	}
}

// steer passes a line on and describes that; the lock is held.
func (l *Lines) steer(text string) string {
	switch {
	case text == "":
	case Slash(text) != "":
		return "not sent: " + Slash(text) + " needs a full terminal"
	case l.say != nil:
		l.say(text)
	default:
		l.early = append(l.early, text)
	}
	return "sent to the agent"
}

// Slash returns the command of the drawn session that a line calls, empty if it is a message.
func Slash(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if !strings.HasPrefix(word, "/") || strings.ContainsAny(word[1:], "/:") {
		return ""
	}
	return word
}

// Steer passes lines that answer no question to say, including earlier ones. If say is nil,
// they wait.
func (l *Lines) Steer(say func(string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.say = say; say == nil {
		return
	}
	for _, text := range l.early {
		say(text)
	}
	l.early = nil
}

// Line asks for a line. ok is false if ctx or the input ends first.
func (l *Lines) Line(ctx context.Context, prompt string) (text string, ok bool) {
	to := make(chan string, 1)
	l.mu.Lock()
	l.answer = to
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.answer = nil
		l.mu.Unlock()
	}()
	fmt.Fprint(l.out, Fit(l.out, prompt))
	select {
	case text = <-to:
		return text, true
	case <-ctx.Done():
	case <-l.ended:
	}
	fmt.Fprintln(l.out) // what follows is not on the prompt's line
	return "", false
}

// head formats a question. It is printed together with its prompt, so that an answer to it
// cannot come too early.
func head(question string) string { return "\n? " + question + "\n" }

// Like lists the rules that the answer p adds to the task; if empty, none.
func Like(q gate.Question) string {
	var names []string
	for _, r := range q.Like {
		if r.Command == "" {
			names = append(names, "every "+Line(r.Tool, 80))
		} else {
			names = append(names, Line(r.Command, 80))
		}
	}
	return strings.Join(names, ", ")
}

// approvePrompt names the answers to a question about a call.
func approvePrompt(q gate.Question) string {
	like := Like(q)
	if like != "" {
		like = "p " + like + " · "
	}
	return "  y once · t exactly this, for the task · w always here · " + like + "a everything · n [REASON] no · e edit · ? help: "
}

const (
	allPrompt  = "  everything in this task then runs without a question; a again to confirm: "
	editPrompt = "  what to run in its place (empty goes back): "
)

// Approve asks the user about one call. Without an answer the call is refused. A line that is
// not an answer goes to the agent.
func (l *Lines) Approve(ctx context.Context, about gate.Question) gate.Answer {
	shown := QuestionTitle(about) + "\n" + l.about(about.Call)
	if why := QuestionReason(about); why != "" {
		shown += "\n  " + why
	}
	if about.Note != "" {
		shown += "\n  " + Clean(about.Note)
	}
	l.asking.Lock()
	defer l.asking.Unlock()
	keys := approvePrompt(about)
	for prompt := head(shown) + keys; ; prompt = keys {
		text, ok := l.Line(ctx, prompt)
		if !ok {
			return gate.Answer{}
		}
		key, rest, _ := strings.Cut(text, " ")
		switch strings.ToLower(key) + map[bool]string{true: "…"}[rest != "" && !strings.EqualFold(key, "n")] {
		case "y":
			return gate.Answer{Allow: true}
		case "t":
			return gate.Answer{Allow: true, Same: true}
		case "w":
			return gate.Answer{Allow: true, Always: true}
		case "p":
			if len(about.Like) > 0 {
				return gate.Answer{Allow: true, Like: true}
			}
			fmt.Fprintln(l.out, "  (no pattern fits this call)")
		case "a":
			if again, _ := l.Line(ctx, allPrompt); strings.EqualFold(again, "a") {
				return gate.Answer{Allow: true, ForTask: true}
			}
		case "n":
			return gate.Answer{Text: strings.TrimSpace(rest)}
		case "e":
			if args, ok := l.edited(ctx, about.Args); ok {
				return gate.Answer{Args: args}
			}
		case "?":
			fmt.Fprintln(l.out, Fit(l.out, "  "+strings.ReplaceAll(ApproveHelp, "\n", "\n  ")+
				"\n  Any other line is sent to the agent. Ctrl-C ends the turn."))
		case "":
		default:
			l.mu.Lock()
			fmt.Fprintln(l.out, "  (not an answer; "+l.steer(text)+")")
			l.mu.Unlock()
		}
	}
}

// maxEdited is how much of what is edited is shown, in columns.
const maxEdited = 4000

// edited shows and asks for a call's command, or for its arguments as JSON if it has no command.
func (l *Lines) edited(ctx context.Context, args string) (string, bool) {
	name, now := Editable(args, "command")
	if name == "" { // on one line
		now = op.CanonicalArgs(args)
	}
	now = runewidth.Truncate(Clean(now), maxEdited, "…")
	text, ok := l.Line(ctx, "  now: "+strings.ReplaceAll(now, "\n", "\n    ")+"\n"+editPrompt)
	if !ok || text == "" {
		return "", false
	}
	text, err := Edited(args, name, text)
	if err != nil {
		fmt.Fprintln(l.out, "  Not taken: "+err.Error())
	}
	return text, err == nil
}

// Ask asks the user a question of the program or the model; false means no answer.
func (l *Lines) Ask(ctx context.Context, question string) (string, bool) {
	l.asking.Lock()
	defer l.asking.Unlock()
	const prompt = "  your answer (Ctrl-C ends the turn): "
	answer, ok := l.Line(ctx, head(Clean(question))+prompt)
	for ok && answer == "" {
		answer, ok = l.Line(ctx, prompt)
	}
	return answer, ok
}

// Trust asks the user to approve something that a project brings.
func (l *Lines) Trust(ctx context.Context, question string) bool {
	l.asking.Lock()
	defer l.asking.Unlock()
	const prompt = "  y approve · n not: "
	text, ok := l.Line(ctx, head(Clean(question))+prompt)
	for ok && !strings.EqualFold(text, "y") && !strings.EqualFold(text, "n") {
		text, ok = l.Line(ctx, prompt)
	}
	return strings.EqualFold(text, "y")
}

// PrettyArgs formats a call's arguments, one a line.
func PrettyArgs(args string) string {
	var m map[string]any
	if json.Unmarshal([]byte(args), &m) != nil {
		return "  " + args
	}
	var lines []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		text, ok := m[k].(string)
		if !ok {
			data, err := json.Marshal(m[k])
			if err != nil {
				return "  " + args
			}
			text = op.CanonicalArgs(string(data)) // as it was written: & is no \u0026
		}
		lines = append(lines, "  "+k+": "+strings.ReplaceAll(text, "\n", "\n    "))
	}
	return strings.Join(lines, "\n")
}
