//go:build unix

// Package exit maps errors to the program's exit codes.
package exit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"anamnesis/anamnesis/attention"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/review"
	"anamnesis/knowledge_base/userfile"
	"anamnesis/opstream"
	"anamnesis/orchestrator/feature/hook"
	"anamnesis/orchestrator/replica"
	"anamnesis/orchestrator/replica/bucket"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// The exit codes, as docs/reference/files.md lists them.
const (
	Done    = 0 // done
	Failed  = 1 // failed
	Usage   = 2 // usage or configuration
	Refused = 3 // refused: approval, unsafe, or held by another process
	Corrupt = 4 // corrupt store
	Limit   = 5 // stopped by a limit
	Stuck   = 6 // stuck: a user has to decide

	Evicted     = 143 // SIGTERM, or the terminal was lost
	Interrupted = 130 // Ctrl-C, by the shells' convention of 128 + signal
)

// Error carries an exit code beside an error.
type Error struct {
	Code int
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func With(code int, err error) error { return &Error{code, err} }

// Reported is an error that the user has seen: only its exit code is left.
type Reported struct{ Err error }

func (e *Reported) Error() string { return e.Err.Error() }
func (e *Reported) Unwrap() error { return e.Err }

// Report returns an error that is not printed again.
func Report(err error) error { return &Reported{err} }

// Usagef returns an error about the user's request.
func Usagef(format string, args ...any) error {
	return &Error{Usage, fmt.Errorf(format, args...)}
}

// Code is the one place where errors become exit codes. Typed errors of other packages are
// listed here once; everything else is a plain failure.
func Code(err error) int {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	switch {
	case errors.As(err, new(*session.UsageError)), errors.As(err, new(*attention.TableError)),
		errors.As(err, new(userfile.Error)):
		return Usage
	case errors.As(err, new(*knowledgebase.ConflictError)), errors.As(err, new(*review.StateError)):
		return Refused
	}
	for _, c := range []struct {
		code int
		errs []error
	}{
		{Done, []error{session.ErrWaits, session.ErrDone}},
		{Corrupt, []error{opstream.ErrCorrupt, worldstate.ErrCorrupt, state.ErrStream, replica.ErrDamaged}},
		{Refused, []error{
			worldstate.ErrRefused, worldstate.ErrStale, worldstate.ErrLocked, opstream.ErrLocked,
			taskdir.ErrBusy, taskdir.ErrElsewhere, taskdir.ErrPending, taskdir.ErrAnswered, state.ErrNotJumped,
			taskdir.ErrSubagent, taskdir.ErrImported, taskdir.ErrKept, taskdir.ErrRunning,
			worldstate.ErrUnfinished, history.ErrBusy, runtime.ErrCallOpen, session.ErrNotApproved, hook.ErrBlocked,
			replica.ErrLost, replica.ErrHeld, replica.ErrNoFence, replica.ErrNewer,
			bucket.ErrKey, bucket.ErrRefused, bucket.ErrFails,
		}},
		{Usage, []error{
			taskdir.ErrNoTask, replica.ErrNoTask, state.ErrNoStep, workspace.ErrNoDirectory, runtime.ErrSecretName,
			runtime.ErrNotText, runtime.ErrTaskExists, taskdir.ErrNotLive, taskdir.ErrNoQuestion,
			worldstate.ErrUnknown, opstream.ErrNotFound, knowledgebase.ErrNotFound,
			worldstate.ErrNoDirectory, worldstate.ErrNoPath, worldstate.ErrBadName, taskdir.ErrNoOp,
		}},
		{Limit, []error{worldstate.ErrFull}},
		{Interrupted, []error{context.Canceled}}, // before a turn began
	} {
		for _, target := range c.errs {
			if errors.Is(err, target) {
				return c.code
			}
		}
	}
	return Failed
}

// WithoutSignal returns the text of a signal's error without repeating the signal.
func WithoutSignal(text string) string {
	parts := slices.DeleteFunc(strings.Split(text, ": "),
		func(part string) bool { return part == context.Canceled.Error() })
	return strings.Join(append([]string{"interrupted"}, parts...), ": ")
}
