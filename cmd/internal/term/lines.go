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

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/gate"
)

const maxLineBytes = 1 << 20

// Lines shares a plain terminal between lines that steer a task and questions that
// are answered with a line: for terminals that cannot be drawn on, and for screen
// readers. Its methods may be called from any goroutine.
type Lines struct {
	out io.Writer

	asking sync.Mutex // held while a question is open

	mu     sync.Mutex
	say    func(string)
	early  []string    // lines typed while say is nil
	answer chan string // of the question that waits for a line, or nil
	ended  chan struct{}
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

// steer passes a line on and says what became of it; the caller holds mu.
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

// Approve asks the user about one call, who answers as with 'anamnesis answer'. Without an answer the call is refused.
// A line that is not an answer goes to the agent.
func (l *Lines) Approve(ctx context.Context, about gate.Question) gate.Answer {
	shown := QuestionTitle(about) + "\n" + PrettyArgs(about.Args)
	for _, remark := range []string{QuestionReason(about), about.Note} {
		if remark != "" {
			shown += "\n  " + remark
		}
	}
	l.asking.Lock()
	defer l.asking.Unlock()
	const keys = "  y once · always in this directory · n [REASON] no · any other line goes to the agent: "
	for prompt := head(Clean(shown)) + keys; ; prompt = keys {
		text, ok := l.Line(ctx, prompt)
		if !ok {
			return gate.Answer{}
		}
		if answer, err := question.Parse(&op.QuestionAsked{About: op.AboutCall}, text); err == nil {
			return answer
		} else if text != "" {
			l.mu.Lock()
			fmt.Fprintln(l.out, "  (not an answer; "+l.steer(text)+")")
			l.mu.Unlock()
		}
	}
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
