package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"anamnesis/anamnesis/tokens"
	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/mention"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/redact"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// Ledger is a task's journal and the state folded from it. Except for what the journal
// itself allows, only the goroutine that runs the task uses it, or calls that run one
// after another.
type Ledger struct {
	ID      string
	Home    taskdir.Home
	Journal *Journal
	Counter *tokens.Counter
	Now     func() time.Time
	// Answered receives after a question was answered. It has room for one.
	Answered chan struct{}
	// snapshotEvery is how many operations the stream must grow by before its fold is written
	// again; 0: DefaultSnapshotEvery.
	snapshotEvery uint64

	state     state.State
	unusable  bool   // a fold failed
	snapshot  uint64 // seq of the last operation in a snapshot of the index
	takenOver uint64 // the last operation when this process opened the task
}

// OpenLedger opens and folds a task's stream.
func OpenLedger(h taskdir.Home, id string, counter *tokens.Counter, snapshotEvery uint64, o Options) (*Ledger, error) {
	if root := h.KeptAs(id); root != "" && o.Safe == nil { // what is recorded only here would be lost
		return nil, remedy.With(fmt.Errorf("task %s: %w", id, taskdir.ErrKept), remedy.ContinueKept, root)
	}
	j, err := Open(h.Task(id), h.Vault(id), o)
	if err != nil {
		return nil, err
	}
	l := &Ledger{ID: id, Home: h, Journal: j, Counter: counter, Now: o.Stream.Now, snapshotEvery: snapshotEvery,
		Answered: make(chan struct{}, 1)}
	if err := l.catchUp(); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return l, nil
}

// Advanced reports whether every operation was folded, and any since this process opened the
// task.
func (l *Ledger) Advanced() bool { return !l.unusable && l.state.Last != l.takenOver }

// catchUp folds the stream on disk, from its snapshot on.
func (l *Ledger) catchUp() error {
	l.state = *state.FromSnapshot(l.Journal.Log())
	l.snapshot = l.state.Last
	err := taskdir.EachDecoded(l.Journal.Log().Since(l.state.Last), l.fold)
	if err != nil {
		return err
	}
	l.takenOver = l.state.Last
	// The queue is empty: this sets the operation and step from which the journal continues.
	return l.Journal.ApplyQueued(&l.state, l.fold)
}

// fold applies one operation to the task's state.
func (l *Ledger) fold(o op.Op) error {
	err := state.Fold(&l.state, o)
	l.unusable = l.unusable || err != nil
	return err
}

// State returns the folded state. It may be read while Run is not running.
func (l *Ledger) State() *state.State { return &l.state }

// Unanswered folds what was requested since Run returned, and reports whether there are words
// to answer or a jump to perform. It may be called while Run is not running.
func (l *Ledger) Unanswered() bool {
	return l.ApplyQueued() == nil && (l.state.Turn.Open || l.state.Jump.Pending != nil)
}

// Say records a user's words. They are durable when it returns; the agent
// sees them with its next request.
func (l *Ledger) Say(ctx context.Context, text string, source op.Source) error {
	return l.Journal.Post(ctx, l.UserSaid(text, source))
}

// UserSaid returns a user's words with the files that they name. Those of a subagent's task are a
// model's, which may read no files that way.
func (l *Ledger) UserSaid(text string, source op.Source) *op.UserSaid {
	b := &op.UserSaid{Text: text, Source: source}
	if opened := &l.state.Opened; opened.Dir != "" && opened.Parent == nil {
		b.Text, b.Parts = mention.Attach(opened.Dir, text)
	}
	return b
}

// Jump schedules a user's jump for the end of the step under way, unless one is pending: ErrPending.
func (l *Ledger) Jump(ctx context.Context, j op.JumpRequested) error {
	return l.Journal.PostWith(ctx, func(queue []op.Op) ([]op.Body, error) {
		if _, err := l.state.Checkpoint(j.To); err != nil {
			return nil, err
		}
		if err := l.checkPending(queue); err != nil {
			return nil, err
		}
		j.By = op.ByUser
		return []op.Body{&j}, nil
	})
}

// Questions returns the task's questions, with what is not folded yet. It may be called from any goroutine.
func (l *Ledger) Questions() (qs state.Questions) {
	l.Journal.ReadQueue(func(queue []op.Op) { qs = l.questions(queue) })
	return qs
}

func (l *Ledger) questions(queue []op.Op) state.Questions {
	qs := slices.Clone(l.state.Questions)
	for _, o := range queue {
		qs.Fold(o)
	}
	return qs
}

// Answer records an answer to a question that has none. Errors: taskdir.ErrAnswered, taskdir.ErrNoQuestion.
func (l *Ledger) Answer(ctx context.Context, a *op.QuestionAnswered) error {
	err := l.Journal.PostWith(ctx, func(queue []op.Op) ([]op.Body, error) {
		for _, q := range l.questions(queue) {
			switch {
			case q.Seq != a.Asked:
			case q.Answer != nil:
				return nil, taskdir.Answered(q)
			default:
				return []op.Body{a}, nil
			}
		}
		return nil, fmt.Errorf("task %s: %w: that of op %d is over", l.ID, taskdir.ErrNoQuestion, a.Asked)
	})
	select {
	case l.Answered <- struct{}{}:
	default:
	}
	return err
}

// Serve executes the commands that other processes send to the task, until stop is called;
// stop returns when the last is answered. endTurn ends the turn with a cause.
func (l *Ledger) Serve(ctx context.Context, h taskdir.Home, endTurn context.CancelCauseFunc) (stop func(), err error) {
	return taskdir.Serve(h.Socket(l.ID), func(c taskdir.Command) error {
		if err := l.Obey(ctx, c, endTurn); err != nil {
			return err
		}
		return l.Journal.Safe(ctx) // what is confirmed to another process is safe
	})
}

// Obey executes a user's command. endTurn ends the turn with a cause.
func (l *Ledger) Obey(ctx context.Context, c taskdir.Command, endTurn context.CancelCauseFunc) error {
	switch c.Verb {
	case "say":
		said := l.UserSaid(c.Text, op.SourceSteer)
		said.Inbox = c.Sent
		return l.Journal.Post(ctx, said)
	case "answer":
		if c.Answer == nil {
			return errors.New("the command has no answer")
		}
		c.Answer.Inbox = c.Sent
		return l.Answer(ctx, c.Answer)
	case "jump":
		c.JumpRequested.Inbox = c.Sent
		return l.Jump(ctx, c.JumpRequested)
	case "stop":
		if c.Sent != nil { // recorded first: the next process does not stop again
			if err := l.Journal.Post(ctx, &op.InboxRead{Sent: *c.Sent, Verb: c.Verb}); err != nil {
				return err
			}
		}
		endTurn(fmt.Errorf("%w from %s", notice.ErrStopped, c.From))
		return nil
	}
	return fmt.Errorf("unknown command %q", c.Verb)
}

// Resume records that this process continues the task, with what it changes, and a user's words if there are any.
func (l *Ledger) Resume(ctx context.Context, message string, to *op.TaskResumed, more ...op.Body) error {
	bodies := append([]op.Body{to}, more...)
	if message != "" {
		bodies = append(bodies, l.UserSaid(message, op.SourceRequest))
	}
	return l.Record(ctx, bodies...)
}

// Ops reads ranges of operations back from the stream.
func (l *Ledger) Ops(ranges ...op.Range) ([]op.Op, error) {
	var out []op.Op
	for _, r := range ranges {
		for rec, err := range l.Journal.Log().Since(r.First - 1) {
			if err != nil {
				return nil, fmt.Errorf("read ops %s: %w", r, err)
			}
			if rec.Seq > r.Last {
				break
			}
			o, err := taskdir.Decode(rec)
			if err != nil {
				return nil, err
			}
			if out = append(out, o); rec.Seq == r.Last {
				break // the next line is not requested, and may be damaged
			}
		}
	}
	return out, nil
}

// Op reads one operation back from the stream.
func (l *Ledger) Op(seq uint64) (op.Op, error) { return taskdir.ReadOp(l.Journal.Log(), seq) }

// StepEndedAt returns when a step's checkpoint was recorded. If that line is damaged, it
// returns the time of the line before: it errs on the earlier side.
func (l *Ledger) StepEndedAt(id int) (time.Time, error) {
	st := l.state.Steps.At(id)
	o, err := l.Op(st.Last)
	if errors.Is(err, opstream.ErrCorrupt) {
		o, err = l.Op(st.Last - 1)
	}
	return o.Time, err
}

// PostResult records a call's result, after what the call made and the jump that it requests, in one
// write: no crash leaves a jump without the result that announces it. If another jump is pending, the
// result is an error. found are the secrets that the tool found itself.
func (l *Ledger) PostResult(ctx context.Context, found []redact.Found, jump *op.JumpRequested, res *op.ToolReturned,
	made ...op.Body) error {
	if err := l.Journal.keepFound(res.Reads, found); err != nil {
		return err
	}
	if jump == nil {
		return l.Journal.Post(ctx, append(made, res)...)
	}
	return l.Journal.PostWith(ctx, func(queue []op.Op) ([]op.Body, error) {
		if err := l.checkPending(queue); err != nil {
			text := fmt.Sprintf("Not scheduled: %v.", err)
			return []op.Body{&op.ToolReturned{Call: res.Call, Name: res.Name, Text: text, IsError: true,
				Repeats: res.Repeats, Millis: res.Millis}}, nil
		}
		return append([]op.Body{jump}, append(made, res)...), nil
	})
}

// checkPending returns ErrPending if a jump was requested, possibly in operations that are not
// folded yet.
func (l *Ledger) checkPending(queue []op.Op) error {
	var pending *op.JumpRequested
	if p := l.state.Jump.Pending; p != nil {
		pending = &p.JumpRequested
	}
	for _, o := range queue {
		if b, ok := o.Body.(*op.JumpRequested); ok {
			pending = b
		}
	}
	if pending == nil {
		return nil
	}
	return fmt.Errorf("%s is %w; one step makes one jump or sends one D-Mail", pending.Noun(), taskdir.ErrPending)
}

// Record appends operations and folds them, with everything posted before.
// Only the goroutine that runs the task may call it.
func (l *Ledger) Record(ctx context.Context, bodies ...op.Body) error {
	if err := l.Journal.Post(ctx, bodies...); err != nil {
		return err
	}
	return l.ApplyQueued()
}

// ApplyQueued folds what was posted. Only the goroutine that runs the task may call it.
func (l *Ledger) ApplyQueued() error { return l.Journal.ApplyQueued(&l.state, l.fold) }

// KeptOf lists the operations of the reply under way that hold a call's output.
func (l *Ledger) KeptOf(call string) ([]uint64, error) {
	var out []uint64
	for seq := l.state.Reply.Seq + 1; seq <= l.state.Last; seq++ {
		o, err := l.Op(seq)
		if err != nil {
			return nil, fmt.Errorf("look for what call %s printed: %w", call, err)
		}
		if k, ok := o.Body.(*op.OutputKept); ok && k.Call == call {
			out = append(out, seq)
		}
	}
	return out, nil
}

// DefaultSnapshotEvery is how many operations a stream must grow by before its fold is written
// again: folding fewer takes less time than writing a snapshot.
const DefaultSnapshotEvery = 512

// snapshotShare bounds the cost of snapshots in a running task: the stream must have grown by
// this part of its length, so that the total written is proportional to the stream.
const snapshotShare = 16

// SnapshotStep writes a snapshot while the task runs, if it is due.
func (l *Ledger) SnapshotStep() {
	l.writeSnapshot(max(l.snapshotDue(), l.state.Last/snapshotShare))
}

// SnapshotClose writes a snapshot at the end, if it is due or the existing one was refused, as
// it would be at every opening.
func (l *Ledger) SnapshotClose() {
	due := l.snapshotDue()
	if l.Journal.Log().SnapshotRefused() != nil {
		due = 1
	}
	l.writeSnapshot(due)
}

func (l *Ledger) snapshotDue() uint64 { return cmp.Or(l.snapshotEvery, DefaultSnapshotEvery) }

// writeSnapshot writes the folded state beside the stream, if the stream grew by due
// operations. The snapshot is derived: if it cannot be written, the next opening takes longer,
// and the next due snapshot tries again.
func (l *Ledger) writeSnapshot(due uint64) {
	if l.unusable || l.state.Last-l.snapshot < due {
		return
	}
	l.snapshot = l.state.Last
	if data, err := state.Marshal(&l.state); err == nil {
		_ = l.Journal.Log().WriteSnapshot(state.FoldVersion, data, l.state.Last)
	}
}
