//go:build unix

// Package notify tells a user who is away that a task asks, waits for its provider or has ended. The
// notifiers are those that the user's config.yaml names.
package notify

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.yaml.in/yaml/v4"

	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
)

// Key is the key of config.yaml that names the notifiers. Only the user's own file may have it: a notifier
// is a command that runs.
const Key = "notify"

// Bell is the notifier that rings at the terminal of the program.
const Bell = "bell"

// Limit is the usual time limit of one notification, and of all that are left at the end.
const Limit = 10 * time.Second

const (
	minWait        = time.Minute // a shorter wait for a provider is over before a user could come
	maxQueued      = 32
	maxTextColumns = 200
)

// errLate is the failure of a notifier that reached a time limit.
var errLate = errors.New("it did not end in time")

// Event is what a command reads as one line of JSON. Prompt and Text are one line each.
type Event struct {
	Event  string `json:"event"` // asked | waiting | done | stuck | limit | failed
	Task   string `json:"task"`
	Prompt string `json:"prompt"`
	Dir    string `json:"dir"`
	Text   string `json:"text"`
	Next   string `json:"next"` // a command for the user
}

// Parse reads the value of Key: a notifier or a list of them.
func Parse(node *yaml.Node) (to []string, err error) {
	nodes := []*yaml.Node{node}
	if node.Kind == yaml.SequenceNode {
		nodes = node.Content
	}
	for _, n := range nodes {
		if n.Kind != yaml.ScalarNode || strings.TrimSpace(n.Value) == "" {
			return nil, errors.New("want bell, desktop, a command, or a list of these")
		}
		to = append(to, n.Value)
	}
	return to, nil
}

// Notifier sends the events of one session at a time. A nil Notifier sends none.
type Notifier struct {
	limit  time.Duration
	cancel context.CancelCauseFunc
	sinks  []*sink
	work   sync.WaitGroup

	mu sync.Mutex
	at Event // the task, its request and its directory
}

// sink is one notifier of the configuration. It gets the events one after the other, so that one that hangs
// delays no other.
type sink struct {
	queue chan Event // nil after Close
	err   error      // its first failure
}

// New returns a notifier, nil if to is empty. Each of to gets at most limit for an event. The end of ctx
// kills what runs.
func New(ctx context.Context, to []string, limit time.Duration) *Notifier {
	if len(to) == 0 {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	n := &Notifier{limit: limit, cancel: cancel}
	for _, one := range to {
		queue := make(chan Event, maxQueued)
		s := &sink{queue: queue}
		n.sinks = append(n.sinks, s)
		n.work.Go(func() {
			for e := range queue {
				err := execute(ctx, limit, one, e)
				n.mu.Lock()
				// With another cause the user ends the program, and a notifier that was killed has not failed.
				if cause := context.Cause(ctx); cause == nil || cause == errLate {
					s.err = cmp.Or(s.err, err)
				}
				n.mu.Unlock()
			}
		})
	}
	return n
}

// send queues an event and does not wait. A queue that is full drops it.
func (n *Notifier) send(event, text, next string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.at
	e.Event, e.Text = event, view.Line(text, maxTextColumns)
	e.Next = fmt.Sprintf("anamnesis %s %s", next, e.Task)
	for _, s := range n.sinks {
		select {
		case s.queue <- e:
		default:
			s.err = cmp.Or(s.err, errLate)
		}
	}
}

// Close sends what is queued, for at most the time limit. It warns of each notifier that failed, without its
// command, which may hold a password.
func (n *Notifier) Close(warn func(texts ...string)) {
	if n == nil {
		return
	}
	n.mu.Lock()
	for _, s := range n.sinks {
		close(s.queue)
		s.queue = nil
	}
	n.mu.Unlock()
	late := time.AfterFunc(n.limit, func() { n.cancel(errLate) })
	n.work.Wait()
	late.Stop()
	n.cancel(nil)
	for i, s := range n.sinks {
		if s.err != nil {
			warn(view.Line(fmt.Sprintf("notifier %d of config.yaml failed: %v", i+1, s.err), 2*maxTextColumns))
		}
	}
}

// execute runs a notifier. Its processes are a group of their own, which is killed at the time limit.
func execute(ctx context.Context, limit time.Duration, to string, e Event) error {
	args, input, err := command(to, e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	c := exec.CommandContext(ctx, args[0], args[1:]...)
	c.SysProcAttr, c.WaitDelay = &syscall.SysProcAttr{Setpgid: true}, time.Second
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.Stdin = strings.NewReader(input)
	_, err = c.Output()
	var ended *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay): // a process in the background has the output open
		return nil
	case ctx.Err() != nil:
		return errLate
	case errors.As(err, &ended):
		return fmt.Errorf("%w %s", err, ended.Stderr) // a bounded part of it
	}
	return err
}

// command returns what a notifier runs, and its standard input.
func command(to string, e Event) (args []string, input string, err error) {
	title := "Anamnesis: " + e.Event
	switch to {
	case Bell:
		// TTOU would stop a process that is not in the terminal's foreground. Without a terminal nothing rings.
		write := []string{"sh", "-c", "trap '' TTOU; { cat >/dev/tty; } 2>/dev/null || :"}
		return write, "\a" + sequence(title, e.Text), nil
	case "desktop":
		if _, err := exec.LookPath("osascript"); err != nil {
			markup := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
			return []string{"notify-send", "--app-name=anamnesis", "--", title, markup.Replace(e.Text)}, "", nil
		}
		return []string{"osascript", "-e", "on run argv", "-e",
			"display notification (item 2 of argv) with title (item 1 of argv)",
			"-e", "end run", title, e.Text}, "", nil
	}
	data, err := json.Marshal(e)
	return []string{"sh", "-c", "exec >/dev/null\n" + to}, string(data) + "\n", err
}

// sequence makes a terminal show a notification. Terminals that know both forms would show two.
func sequence(title, text string) string {
	term := os.Getenv("TERM")
	if os.Getenv("VTE_VERSION") != "" || strings.HasPrefix(term, "rxvt") || strings.HasPrefix(term, "foot") {
		return "\x1b]777;notify;" + title + ";" + text + "\x1b\\"
	}
	return "\x1b]9;" + title + ": " + text + "\x1b\\"
}

// Watch returns a session's callbacks that also send its events.
func (n *Notifier) Watch(c session.Client) session.Client {
	if n == nil {
		return c
	}
	started, recorded := c.Started, c.Op
	c.Started = func(i session.Info) {
		at := Event{Task: i.Task, Prompt: view.Line(i.Title, maxTextColumns), Dir: i.Dir}
		if real, err := session.RealDir(i.Dir); err == nil { // otherwise opening the task reports it
			at.Dir = real
		}
		n.mu.Lock()
		n.at = at
		n.mu.Unlock()
		if started != nil {
			started(i)
		}
	}
	waits := false // one event an outage, in which each try that fails records a wait
	c.Op = func(o op.Op) {
		switch b := o.Body.(type) { // operations come one at a time
		case *op.QuestionAsked:
			n.send("asked", timeline.QuestionText(b), "answer")
		case *op.ModelReplied, *op.TurnEnded:
			waits = false
		case *op.ModelFailed:
			if w := b.Wait; w != nil && !waits && max(w.Until.Sub(w.Since), w.Until.Sub(o.Time)) > minWait {
				waits = true
				n.send("waiting", (&state.Outage{Wait: *w, Error: b.Error}).Text(o.Time), "attach")
			}
		}
		if recorded != nil {
			recorded(o)
		}
	}
	c.Ended = func(out runtime.Outcome) {
		switch {
		case out.Reason == "done":
			n.send("done", out.Answer, "report")
		case out.Reason == "stuck", out.Reason == "limit",
			out.Reason == "failed" && !errors.Is(out.Err, context.Canceled):
			n.send(out.Reason, out.Detail, "resume")
		}
	}
	return c
}
