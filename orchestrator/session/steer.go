package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream/durable"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/journal"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// Say sends a message to a running task.
func (s *Service) Say(ctx context.Context, task, text string) error {
	if text == "" {
		return Usagef("the text is empty")
	}
	if _, err := taskdir.ReadState(s.Home, task); err != nil {
		return err
	}
	err := s.deliver(ctx, task, taskdir.Command{Verb: "say", Text: text})
	if errors.Is(err, taskdir.ErrNotLive) {
		return remedy.With(err, remedy.Request, task)
	}
	return err
}

// Stop ends the turn of a running task; a command that runs has the task's grace period. from says where the user
// asks for it, as in "another terminal", and is recorded.
func (s *Service) Stop(ctx context.Context, task, from string) error {
	if _, err := taskdir.ReadState(s.Home, task); err != nil {
		return err
	}
	return s.deliver(ctx, task, taskdir.Command{Verb: "stop", From: from})
}

// Question returns the open question of a task. Errors: taskdir.ErrNoQuestion, and taskdir.ErrAnswered if the
// task has not acted on the answer yet.
func (s *Service) Question(task string) (*state.Question, error) {
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil {
		return nil, err
	}
	if err := taskdir.CheckParent(st); err != nil { // a subagent's questions are its parent's
		return nil, err
	}
	q := st.Questions.Open()
	if n := len(st.Questions); q == nil && n > 0 {
		return nil, taskdir.Answered(st.Questions[n-1])
	}
	if q == nil {
		return nil, fmt.Errorf("task %s (%s): %w", task, st.Standing(s.Live(task) != 0), taskdir.ErrNoQuestion)
	}
	return q, nil
}

// Answer answers a question of a task, as it is typed; see question.Parse. seq is the question's operation; 0:
// the open one. from says where the user is: question.FromAnswer, … It reports whether a process runs the task:
// otherwise the answer waits for the next one. Errors: taskdir.ErrNoQuestion, taskdir.ErrAnswered.
func (s *Service) Answer(ctx context.Context, task string, seq uint64, text, from string) (running bool, err error) {
	q, err := s.Question(task)
	if err != nil && (seq == 0 || !errors.Is(err, taskdir.ErrNoQuestion) && !errors.Is(err, taskdir.ErrAnswered)) {
		return false, err
	}
	a := &op.QuestionAnswered{Asked: seq, By: cmp.Or(s.o.By, question.UserName()), From: from}
	if q != nil && (seq == 0 || seq == q.Seq) {
		a.Asked = q.Seq
		if a.Answer, err = question.Parse(&q.QuestionAsked, text); err != nil {
			return false, Usagef("%w", err)
		}
	}
	for try := 1; ; try++ { // another answer, or a process that begins, has the stream for a moment
		err = s.deliver(ctx, task, taskdir.Command{Verb: "answer", Answer: a})
		if !errors.Is(err, taskdir.ErrNotLive) {
			return true, err
		}
		err = s.answerIdle(ctx, task, a)
		if !errors.Is(err, durable.ErrLocked) || try == lockedTries || model.Wait(ctx, lockedPause) != nil {
			return false, err
		}
	}
}

// lockedTries bounds the attempts to write to a stream that others have open, 5 s in all.
const (
	lockedTries = 100
	lockedPause = 50 * time.Millisecond
)

// answerIdle records the answer to a question of a task that no process runs. Its directory may be in use.
func (s *Service) answerIdle(ctx context.Context, task string, a *op.QuestionAnswered) error {
	st, err := taskdir.ReadState(s.Home, task)
	if err != nil {
		return err
	}
	l, err := s.openIdle(task, st)
	if err != nil {
		return err
	}
	return JoinClose(l.Answer(ctx, a), l.Journal.Close())
}

// openIdle opens the stream of a task that no process runs.
func (s *Service) openIdle(task string, st *state.State) (*journal.Ledger, error) {
	counter, err := tokens.ForEncoding(st.Opened.Encoding)
	if err != nil {
		return nil, err
	}
	o := journal.Options{
		Stream: s.o.Store.Stream, Mark: st.Opened.Mark, Count: counter.Count,
		Secrets: s.TaskSecrets(st.Opened.Dir, st.Redact),
		Learned: new(redact.Learned), Dir: st.Opened.Dir,
	}
	o.Stream.Now, o.Stream.Snapshot = time.Now, state.FoldVersion
	return journal.OpenLedger(s.Home, task, counter, 0, o)
}
