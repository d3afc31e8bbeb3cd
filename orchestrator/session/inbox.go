package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

const (
	inboxTime      = 10 * time.Second // how often the holder reads it
	inboxAskedTime = 2 * time.Second  // while a question is open: who answers waits for what follows
	inboxLimit     = 30 * time.Second // of one reading, and of a sender's wait
)

// followInbox executes what users send to the task until ctx ends.
func (s *Session) followInbox(ctx context.Context, endTurn context.CancelCauseFunc) {
	for n := inboxAskedTime; model.Wait(ctx, inboxAskedTime) == nil; n += inboxAskedTime {
		if n%inboxTime == 0 || s.task.Ledger.Questions().Open() != nil {
			s.readInbox(ctx, endTurn)
		}
	}
}

// readInbox records each message since the last one: as what it asks for, or as refused. What a process did not
// record, the next one does.
func (s *Session) readInbox(ctx context.Context, endTurn context.CancelCauseFunc) {
	keep := context.WithoutCancel(ctx)
	ctx, cancel := context.WithTimeout(ctx, inboxLimit)
	defer cancel()
	// While the bucket fails the holder says so, and the next reading tries again.
	_ = s.replica.Inbox(ctx, s.inbox, func(m replica.Message, bad error) error {
		c, by := m.Command, cmp.Or(quote.OneLine(m.By, 100), "an unknown sender")
		c.From, c.Sent = by, &op.Sent{N: m.N, By: by}
		if bad == nil {
			bad = s.task.Ledger.Obey(keep, c, endTurn)
		}
		if bad != nil {
			bad = s.task.Ledger.Journal.Post(keep, &op.InboxRead{Sent: *c.Sent, Verb: c.Verb, Refused: bad.Error()})
		}
		if bad == nil {
			s.inbox = m.N
		}
		return bad
	})
}

// unread reports whether users sent something to a task that this process is about to continue.
func (o *opening) unread(ctx context.Context, st *state.State) (some bool) {
	if b, _, err := o.Bucket(o.Remote.Address); err == nil {
		_ = replica.ReadInbox(ctx, b, st.Opened.Task, st.Inbox,
			func(replica.Message, error) error { some = true; return nil })
	}
	return some
}

// ErrWaits: a message is in the bucket, and no process has recorded it yet.
var ErrWaits = errors.New("the message waits")

// ErrDone: a task that a bucket keeps is done, and no message waits for it.
var ErrDone = errors.New("is done")

// deliver sends a command to a task: to the process of this home that runs it, or, if this is a home of copies, to the
// bucket that keeps the task. It then returns when the task's record says that it was taken, or ErrWaits.
func (s *Service) deliver(ctx context.Context, task string, c taskdir.Command) error {
	idle := taskdir.Send(ctx, s.Home, task, c)
	if s.Home.Standing == nil || !errors.Is(idle, taskdir.ErrNotLive) {
		return idle
	}
	kept, err := replica.ReadCursor(s.Home, task)
	if err != nil || kept == nil {
		return cmp.Or(err, idle)
	}
	b, _, err := s.Bucket(kept.Remote)
	if err != nil {
		return err
	}
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil || c.Verb == "stop" && kept.Last.Released {
		return cmp.Or(err, idle)
	}
	ctx, cancel := context.WithTimeout(ctx, inboxLimit)
	defer cancel()
	host, _ := os.Hostname()
	by := cmp.Or(s.o.By, question.UserName()+"@"+host)
	n, err := replica.Send(ctx, b, st.Inbox, replica.Message{Task: task, By: by, Command: c})
	if err != nil {
		return err
	}
	s.o.Note("sent as message %d; waiting until the task has recorded it", n)
	for taken := false; ; {
		err := s.Ops(task, st.Last, func(o op.Op) error {
			if by := op.SentBy(o.Body); by == nil || by.N != n {
				return nil
			}
			taken = true
			s.o.Note("recorded as op %d", o.Seq)
			if b, ok := o.Body.(*op.InboxRead); ok && b.Refused != "" {
				return &taskdir.RemoteError{Text: b.Refused}
			}
			return nil
		})
		if err != nil || taken {
			return err
		}
		if kept.Last.Released || model.Wait(ctx, time.Second) != nil {
			return fmt.Errorf("%w: %s had task %s last, at %s; the next process that continues it reads message %d",
				ErrWaits, kept.Last.Host, task, kept.Last.Time.Local().Format(time.TimeOnly), n)
		}
		_, _ = replica.Mirror(ctx, b, s.Home, task) // the message stays, also if the bucket is away now
		if now, err := replica.ReadCursor(s.Home, task); err == nil && now != nil {
			kept = now
		}
	}
}
