package taskdir

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"syscall"

	"anamnesis/opstream"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/remedy"
	"anamnesis/orchestrator/state"
)

// EachDecoded visits records as operations.
func EachDecoded(records iter.Seq2[opstream.Record, error], visit func(op.Op) error) error {
	for rec, err := range records {
		if err != nil {
			return err
		}
		o, err := Decode(rec)
		if err != nil {
			return err
		}
		if err := visit(o); err != nil {
			return err
		}
	}
	return nil
}

// ErrSubagent: the task is a subagent's, and only its parent can continue it.
var ErrSubagent = errors.New("a subagent's task")

// ErrImported: the task was read from another agent's session file. It has no snapshots and
// cannot be continued.
var ErrImported = errors.New("an imported session")

// CheckParent returns ErrSubagent, naming the parent, for a subagent's task, and ErrImported
// for an imported one.
func CheckParent(st *state.State) error {
	if o := st.Opened.Origin; o.Imported() {
		err := fmt.Errorf("%w: %s was read from %s, a session of %s, and can only be read", ErrImported,
			st.Opened.Task, o.File, o.Agent)
		return remedy.With(err, remedy.ReadImported, st.Opened.Task)
	}
	if p := st.Opened.Parent; p != nil {
		err := fmt.Errorf("%w: %s was begun by the agent of task %s, which continues it", ErrSubagent,
			st.Opened.Task, p.Task)
		return remedy.With(err, remedy.Resume, p.Task)
	}
	return nil
}

// Errors of tasks, for callers that branch on them.
var (
	// ErrNoTask: there is no task of that name.
	ErrNoTask = errors.New("no such task")
	// ErrPending: a jump is scheduled already, or a D-Mail.
	ErrPending = errors.New("scheduled already")
	// ErrAnswered: the question has an answer.
	ErrAnswered   = errors.New("answered already")
	ErrNoQuestion = errors.New("no open question")
	// ErrBusy: another live task works in the directory.
	ErrBusy = errors.New("directory is in use")
	// ErrRunning: another process of this home runs the task.
	ErrRunning = errors.New("another process runs it")
	// ErrNotLive: the task has no running process.
	ErrNotLive = errors.New("task is not running")
)

// Answered returns the ErrAnswered of a question that has an answer.
func Answered(q state.Question) error {
	return fmt.Errorf("the question of op %d is %w, by %s (%s)", q.Seq, ErrAnswered, q.Answer.By, q.Answer.From)
}

// Decode returns the operation of a stream record. Kinds of newer programs keep their place in
// the order and have no body, as an operation whose body cannot be read.
func Decode(rec opstream.Record) (op.Op, error) {
	b, err := op.Decode(op.Kind(rec.Kind), rec.Body)
	o := op.Op{Seq: rec.Seq, Step: rec.Step, Tok: rec.Tok, Time: rec.Time, Body: b}
	if err != nil && !errors.Is(err, op.ErrUnknownKind) {
		return o, fmt.Errorf("op %d: %w", rec.Seq, err)
	}
	return o, nil
}

// Stream is a task's stream as its process has it, or as one that only reads it.
type Stream interface {
	Get(seq uint64) (opstream.Record, error)
	Since(after uint64) iter.Seq2[opstream.Record, error]
}

func ReadOp(stream Stream, seq uint64) (op.Op, error) {
	rec, err := stream.Get(seq)
	if err != nil {
		return op.Op{}, err
	}
	return Decode(rec)
}

// ReadBody reads the body of an operation that the state names, so that one of another kind is a state.ErrStream.
func ReadBody[B op.Body](stream Stream, seq uint64) (B, error) {
	o, err := ReadOp(stream, seq)
	b, ok := o.Body.(B)
	if err == nil && !ok {
		err = fmt.Errorf("%w: op %d is a %s", state.ErrStream, seq, o.Kind())
	}
	return b, err
}

// ReadState folds a task's stream without holding the task; the task may be live.
func ReadState(h Home, id string) (*state.State, error) {
	st, r, err := OpenState(h, id)
	if err != nil {
		return nil, err
	}
	return st, r.Close()
}

// OpenState is ReadState that returns the stream, too, for operations that the state names. The caller closes it.
func OpenState(h Home, id string) (*state.State, *opstream.Reader, error) {
	r, err := OpenStream(h, id)
	if err != nil {
		return nil, nil, err
	}
	st := state.FromSnapshot(r)
	err = WithRemedy(id, EachDecoded(r.Since(st.Last), func(o op.Op) error { return state.Fold(st, o) }))
	if err == nil && st.Last == 0 {
		err = EmptyStream(id)
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return st, r, nil
}

// errEmpty is part of EmptyStream's error.
var errEmpty = errors.New("has an empty stream")

// EmptyStream returns the error for a task whose stream has no operation.
func EmptyStream(id string) error { return fmt.Errorf("%w: %s %w", ErrNoTask, id, errEmpty) }

// WithRemedy adds the remedy to an error about a damaged stream.
func WithRemedy(id string, err error) error {
	if errors.Is(err, opstream.ErrCorrupt) {
		return remedy.With(err, remedy.Salvage, id)
	}
	return err
}

// EachOp visits a task's durable operations in order.
func EachOp(h Home, id string, visit func(op.Op) error) error {
	return WithRemedy(id, eachOp(h, id, 0, nil, visit))
}

// EachOpSince visits the operations after a seq. What the task's snapshot covers is not
// verified again, so that a few operations of a long task cost little.
func EachOpSince(h Home, id string, after uint64, visit func(op.Op) error) error {
	return eachOp(h, id, after, &opstream.Options{Snapshot: state.FoldVersion}, visit)
}

func eachOp(h Home, id string, after uint64, o *opstream.Options, visit func(op.Op) error) error {
	r, err := openStream(h, id, o)
	if err != nil {
		return err
	}
	defer r.Close()
	return EachDecoded(r.Since(after), visit)
}

// OpenStream opens a task's stream for reading. What the task's snapshot covers is not verified again.
func OpenStream(h Home, id string) (*opstream.Reader, error) {
	return openStream(h, id, &opstream.Options{Snapshot: state.FoldVersion})
}

// openStream opens a task's stream. Without options each line that is read is verified.
func openStream(h Home, id string, o *opstream.Options) (*opstream.Reader, error) {
	if err := CheckTaskID(id); err != nil {
		return nil, err
	}
	_, err := os.Stat(filepath.Join(h.Task(id), "ops"))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, h.NoTask(id)
	} else if err != nil {
		return nil, fmt.Errorf("open task %s: %w", id, err)
	}
	return opstream.OpenReader(h.Task(id), o)
}

// Salvage copies what can be read of a task's stream into a new one in a directory.
func Salvage(ctx context.Context, h Home, id, to string) (opstream.Salvaged, error) {
	if err := CheckTaskID(id); err != nil {
		return opstream.Salvaged{}, err
	}
	got, err := opstream.Salvage(ctx, h.Task(id), to)
	if errors.Is(err, opstream.ErrNotFound) {
		return got, remedy.With(fmt.Errorf("%w: %s", ErrNoTask, id), remedy.ListTasks, "")
	}
	return got, err
}
