// Package question asks users. A question is an operation, open until another one answers it: from the
// terminal of the task, from another process, from a page. The first answer counts. Where no user is present
// the task waits, refuses or stops, as the user chose.
package question

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strings"
	"sync"
	"time"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/taskdir"
)

// When is what becomes of a question that no user is present to answer.
type When string

// The choices.
const (
	Wait   When = "wait"   // the task waits, without its directory
	Refuse When = "refuse" // nothing is asked: calls are refused, the agent decides itself, the turn ends
	Stop   When = "stop"   // the program ends, and the question stays open
)

// ParseWhen parses a choice.
func ParseWhen(s string) (When, error) {
	switch w := When(s); w {
	case Wait, Refuse, Stop:
		return w, nil
	}
	return "", fmt.Errorf("%q: want wait, refuse or stop", s)
}

// ErrOpen: there is no answer, and the question stays open for the next process of the task.
var ErrOpen = errors.New("the question stays open")

// Where answers come from.
const (
	FromTerminal = "terminal" // of the task
	FromAnswer   = "answer"   // the verb
	FromPage     = "page"
	FromAttach   = "attach"
)

// busyPause is the pause between two attempts to get the directory back.
const busyPause = time.Second

// Desk asks the user of a task and its subagents, one question at a time. All questions are recorded in the
// task's own stream. Its methods may be called from any goroutine.
type Desk struct {
	ledger *journal.Ledger
	hold   *taskdir.LiveDir
	when   When
	busy   func(asks string) bool // something works in the directory while a question of that subagent waits
	asking sync.Mutex             // held while the user is asked
	// done are the questions whose answers this process has acted on: asked again, they are new ones.
	done map[uint64]bool
}

// New returns the desk of a task. When the task waits it gives up its hold on the directory, unless busy.
func New(l *journal.Ledger, hold *taskdir.LiveDir, when When, busy func(asks string) bool) *Desk {
	return &Desk{ledger: l, hold: hold, when: when, busy: busy, done: make(map[uint64]bool)}
}

// Asks reports whether there is an answer to be had without a user who is present.
func (d *Desk) Asks() bool { return d.when == Wait || d.when == Stop }

// Ask records a question, unless it is recorded already, and returns its answer. own is the hold of the subagent
// that asks; nil: the task itself does. here asks a user who is
// present, until its context ends; it returns false without an answer. nil: no user is present. ok is false
// if there is no answer. If the program is asked to stop, or is to stop when asked, the error is ErrOpen.
func (d *Desk) Ask(ctx context.Context, q *op.QuestionAsked, own *taskdir.LiveDir, here func(context.Context) (op.Answer, bool)) (a op.Answer, ok bool, err error) {
	d.asking.Lock()
	defer d.asking.Unlock()
	if ctx.Err() != nil {
		return a, false, nil
	}
	keep := context.WithoutCancel(ctx)
	seq, err := d.open(keep, q, here == nil)
	if err != nil {
		return a, false, err
	}
	defer func() { d.done[seq] = ok }()
	if answered := d.answer(seq); answered != nil {
		return answered.Answer, true, nil
	}
	if here == nil {
		if d.when != Wait {
			return a, false, ErrOpen
		}
		holds := []*taskdir.LiveDir{d.hold}
		if own != nil {
			holds = append(holds, own)
		}
		if d.busy(q.Task) {
			holds = nil
		}
		return d.wait(ctx, seq, holds)
	}
	return d.askHere(ctx, keep, seq, here)
}

// open returns the seq of a question, which it records if the task has none like it.
func (d *Desk) open(ctx context.Context, q *op.QuestionAsked, parked bool) (uint64, error) {
	for _, old := range d.ledger.Questions() {
		if old.Same(q) && !d.done[old.Seq] {
			return old.Seq, nil
		}
	}
	q.Parked = parked
	return d.ledger.Journal.PostSeq(ctx, q)
}

// answer returns the answer to a question; nil: there is none yet.
func (d *Desk) answer(seq uint64) *op.QuestionAnswered {
	for _, q := range d.ledger.Questions() {
		if q.Seq == seq {
			return q.Answer
		}
	}
	return nil
}

// askHere asks a user who is present. Somebody else may be faster.
func (d *Desk) askHere(ctx, keep context.Context, seq uint64, here func(context.Context) (op.Answer, bool)) (a op.Answer, ok bool, err error) {
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a, ok = here(asking)
	}()
	for {
		select {
		case <-d.ledger.Answered:
			if answered := d.answer(seq); answered != nil {
				cancel()
				<-done
				return answered.Answer, true, nil
			}
			continue
		case <-done:
		}
		break
	}
	if ctx.Err() != nil {
		return op.Answer{}, false, d.ended(ctx)
	}
	if !ok {
		return a, false, nil
	}
	err = d.ledger.Answer(keep, &op.QuestionAnswered{Asked: seq, Answer: a, By: UserName(), From: FromTerminal})
	if answered := d.answer(seq); answered != nil && (err == nil || errors.Is(err, taskdir.ErrAnswered)) {
		return answered.Answer, true, nil // the recorded one: redacted, or somebody else's
	}
	return a, false, err
}

// ended returns how a question ends whose context did: one that is open when the program is asked to stop
// waits for the next process.
func (d *Desk) ended(ctx context.Context) error {
	if notice.Evicted(ctx) {
		return ErrOpen
	}
	return nil
}

// wait waits for an answer from another process. Meanwhile other tasks may work in the directories of holds.
func (d *Desk) wait(ctx context.Context, seq uint64, holds []*taskdir.LiveDir) (a op.Answer, ok bool, err error) {
	for _, h := range holds {
		if err := h.Park(); err != nil {
			return a, false, err
		}
	}
	answered := d.answer(seq)
	for answered == nil {
		select {
		case <-d.ledger.Answered:
			answered = d.answer(seq)
		case <-ctx.Done():
			return a, false, d.ended(ctx)
		}
	}
	for _, h := range holds {
		for err := h.Unpark(); err != nil; err = h.Unpark() {
			if !errors.Is(err, taskdir.ErrBusy) {
				return a, false, err
			}
			if model.Wait(ctx, busyPause) != nil {
				return a, false, d.ended(ctx)
			}
		}
	}
	return answered.Answer, true, nil
}

// UserName is the name by which the system knows the user of this process.
func UserName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// Parse reads a typed answer to a question: yes, always or no with a reason about a call, yes, no or a new
// limit about a limit, yes or no about the provider, and any words otherwise.
func Parse(q *op.QuestionAsked, text string) (a op.Answer, err error) {
	text = strings.TrimSpace(text)
	word, rest, _ := strings.Cut(text, " ")
	word, rest = strings.ToLower(word), strings.TrimSpace(rest)
	refuse := func(want string) error {
		return fmt.Errorf("%q answers no question about %s; %s", text, subject(q), want)
	}
	switch {
	case text == "":
		return a, errors.New("the answer is empty")
	case q.About == op.AboutAnswer || q.About == op.AboutStrategy:
		return op.Answer{Text: text}, nil
	case word == "no" || word == "n":
		if rest != "" && q.About != op.AboutCall {
			return a, refuse("no takes no reason here")
		}
		return op.Answer{Text: rest}, nil
	case rest != "":
	case word == "yes" || word == "y":
		return op.Answer{Allow: true}, nil
	case word == "always" && q.About == op.AboutCall:
		return op.Answer{Allow: true, Always: true}, nil
	case q.About == op.AboutLimit:
		if _, err := Raised(op.Limits{}, q.Limit, text, 0); err != nil {
			return a, refuse("yes raises it, a value sets it, no ends the turn")
		}
		return op.Answer{Allow: true, Text: text}, nil
	}
	if q.About == op.AboutCall {
		return a, refuse(`answer yes, always (exactly this, in this directory) or no "why"`)
	}
	return a, refuse("yes asks it again, no ends the turn")
}

func subject(q *op.QuestionAsked) string {
	switch q.About {
	case op.AboutCall:
		return "a call"
	case op.AboutLimit:
		return "the limit " + string(q.Limit)
	}
	return "the provider"
}

// Choices says how a question is answered in words.
func Choices(q *op.QuestionAsked) string {
	switch q.About {
	case op.AboutCall:
		return `yes | always | no "why"`
	case op.AboutLimit:
		return "yes (as much again) | a new limit | no"
	case op.AboutProvider:
		return "yes (ask it again) | no"
	}
	return `"your answer"`
}
