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

// Ask records a question, unless it is recorded already, and returns its first answer. here asks a user who is
// present, until its context ends; it returns false without an answer. nil: no user is present, and the task gives
// up its directory meanwhile, with own, the hold of the subagent that asks. ok is false if there is no answer. If
// the program is asked to stop, or is to stop when asked, the error is ErrOpen.
func (d *Desk) Ask(ctx context.Context, q *op.QuestionAsked, own *taskdir.LiveDir,
	here func(context.Context) (op.Answer, bool)) (a op.Answer, ok bool, err error) {
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
	var holds []*taskdir.LiveDir
	if here == nil && !d.busy(q.Task) {
		holds = []*taskdir.LiveDir{d.hold, own}
	}
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	said := make(chan struct{}) // closed when the user who is present has answered or is not asked any more
	var typed op.Answer
	given := false
	if here != nil && d.answer(seq) == nil {
		go func() {
			defer close(said)
			typed, given = here(asking)
		}()
		defer func() { cancel(); <-said }()
	}
	answered := d.answer(seq)
	if answered == nil && here == nil && d.when != Wait {
		return a, false, ErrOpen
	}
	if answered == nil {
		err = park(holds)
	} else {
		holds = nil
	}
	for answered == nil && err == nil {
		select {
		case <-d.ledger.Answered:
		case <-said:
			if !given || ctx.Err() != nil {
				return a, false, d.ended(ctx)
			}
			err = d.ledger.Answer(keep,
				&op.QuestionAnswered{Asked: seq, Answer: typed, By: UserName(), From: FromTerminal})
			if errors.Is(err, taskdir.ErrAnswered) { // another answer was recorded first
				err = nil
			}
		case <-ctx.Done():
			return a, false, d.ended(ctx)
		}
		answered = d.answer(seq) // as recorded: redacted
	}
	if err != nil {
		return a, false, err
	}
	ok, err = d.unpark(ctx, holds)
	return answered.Answer, ok, err
}

// park lets other tasks work in the directories of holds.
func park(holds []*taskdir.LiveDir) error {
	for _, h := range holds {
		if err := h.Park(); err != nil {
			return err
		}
	}
	return nil
}

// unpark takes the directories again, when no other task works there. It returns false if ctx ends first.
func (d *Desk) unpark(ctx context.Context, holds []*taskdir.LiveDir) (bool, error) {
	for _, h := range holds {
		for err := h.Unpark(); err != nil; err = h.Unpark() {
			if !errors.Is(err, taskdir.ErrBusy) {
				return false, err
			}
			if model.Wait(ctx, busyPause) != nil {
				return false, d.ended(ctx)
			}
		}
	}
	return true, nil
}

// open returns the seq of a question, which it records if the task has none like it.
func (d *Desk) open(ctx context.Context, q *op.QuestionAsked, parked bool) (uint64, error) {
	for _, old := range d.ledger.Questions() {
		if old.Same(q) && !d.done[old.Seq] {
			// An earlier process asked it: no user here was asked.
			if again := old.QuestionAsked; parked && old.Answer == nil {
				again.Parked = true
				d.ledger.Journal.Repeat(op.Op{Seq: old.Seq, Time: d.ledger.Now(), Body: &again})
			}
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

// ended returns how a question ends whose context did: one that is open when the program is asked to stop
// waits for the next process.
func (d *Desk) ended(ctx context.Context) error {
	if notice.Evicted(ctx) {
		return ErrOpen
	}
	return nil
}

// UserName is the name by which the system knows the user of this process.
func UserName() string {
	u, err := user.Current()
	if err != nil {
		return "unknown"
	}
	return u.Username
}

// Parse reads a typed answer to a question: see Choices.
func Parse(q *op.QuestionAsked, text string) (a op.Answer, err error) {
	text = strings.TrimSpace(text)
	word, rest, _ := strings.Cut(text, " ")
	word, rest = strings.ToLower(strings.TrimRight(word, ",.;:!")), strings.TrimSpace(rest)
	call := q.About == op.AboutCall
	switch {
	case text == "":
		return a, errors.New("the answer is empty")
	case q.About == op.AboutAnswer || q.About == op.AboutStrategy:
		return op.Answer{Text: text}, nil
	case (word == "no" || word == "n") && (call || rest == ""):
		return op.Answer{Text: rest}, nil
	case (word == "yes" || word == "y") && rest == "":
		return op.Answer{Allow: true}, nil
	case word == "always" && rest == "" && call:
		return op.Answer{Allow: true, Always: true}, nil
	case q.About == op.AboutLimit:
		if _, err = Raised(op.Limits{}, q.Limit, text, 0); err == nil {
			return op.Answer{Allow: true, Text: text}, nil
		}
	}
	return a, fmt.Errorf("%q does not answer the question; it takes %s", text, Choices(q))
}

// Choices says how a question is answered in words.
func Choices(q *op.QuestionAsked) string {
	switch q.About {
	case op.AboutCall:
		return `yes | always | no "why"`
	case op.AboutLimit:
		if q.Limit == op.LimitTime {
			return "yes (as much again) | a new limit, such as 2h | no"
		}
		return "yes (as much again) | a new limit | no"
	case op.AboutProvider:
		return "yes (ask it again) | no"
	}
	return `"your answer"`
}
