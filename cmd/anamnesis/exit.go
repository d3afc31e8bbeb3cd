//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/probe"
	"anamnesis/cmd/internal/show"
	"anamnesis/cmd/internal/stream"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/review"
	"anamnesis/opstream"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/loop"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
	"anamnesis/orchestrator/workspace"
	"anamnesis/worldstate"
)

// The exit codes, as the README lists them.
const (
	exitDone    = 0 // done
	exitFailed  = 1 // failed
	exitUsage   = 2 // usage or configuration
	exitRefused = 3 // refused: approval, unsafe, or held by another process
	exitCorrupt = 4 // corrupt store
	exitLimit   = 5 // stopped by a limit
	exitStuck   = 6 // stuck: a user is asked

	exitInterrupted = 130 // Ctrl-C, by the shells' convention of 128 + signal
)

// exitError carries an exit code beside an error.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// shownError is one that the user has seen: only its exit code is left.
type shownError struct{ err error }

func (e *shownError) Error() string { return e.err.Error() }
func (e *shownError) Unwrap() error { return e.err }

func usageError(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// usageArgs turns cobra's argument errors into usage errors; complete gives it to
// every command.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError("%v; see '%s --help'", err, cmd.CommandPath())
		}
		return nil
	}
}

// flagError puts a flag that could not be read into words: for a number that
// is none, or too large, what was wanted instead of how it was read. A number below
// 0 in an argument's place looks like a flag.
func flagError(command string, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		if n := unknown.GetSpecifiedShortnames(); n != "" && strings.Trim(n, "0123456789") == "" {
			return usageError("-%s: no number below 0 is wanted here; see '%s --help'", n, command)
		}
	}
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &value) || !errors.As(err, &number) || value.GetFlag().Value.Type() == "bool" {
		return usageError("%v; see '%s --help'", err, command)
	}
	problem := "not a number"
	if errors.Is(number, strconv.ErrRange) {
		problem = "a number too large to work with"
	}
	return usageError("--%s %q: %s; see '%s --help'", value.GetFlag().Name, value.GetValue(), problem, command)
}

// exit prints an error as one clear line and returns the exit code.
func (a *app) exit(err error) int {
	if err == nil {
		return exitDone
	}
	if errors.As(err, new(*shownError)) {
		return exitCode(err)
	}
	if exitCode(err) == exitFailed && !errors.As(err, new(*exitError)) {
		err = session.HomeFault(a.getenv, err)
	}
	code, text := exitCode(err), err.Error()
	if code == exitInterrupted && errors.Is(err, context.Canceled) {
		text = interrupted(text)
	}
	if errors.Is(err, knowledgebase.ErrNotFound) {
		text += "; 'anamnesis kb list' shows the cards there are"
	}
	a.notef("%s", text)
	return code
}

// interrupted is the text of an error that a signal caused, which is said once.
func interrupted(text string) string {
	parts := slices.DeleteFunc(strings.Split(text, ": "), func(part string) bool { return part == context.Canceled.Error() })
	return strings.Join(append([]string{"interrupted"}, parts...), ": ")
}

// exitCode is the one place where errors become exit codes. A room's typed
// errors are listed here once; everything else is a plain failure.
func exitCode(err error) int {
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	switch {
	case errors.As(err, new(*session.UsageError)), errors.As(err, new(*anamnesis.TableError)), errors.As(err, new(*retrieval.EvalError)):
		return exitUsage
	case errors.As(err, new(*knowledgebase.ConflictError)), errors.As(err, new(*knowledgebase.StateError)), errors.As(err, new(*review.StaleError)):
		return exitRefused
	}
	for _, c := range []struct {
		code int
		errs []error
	}{
		{exitCorrupt, []error{opstream.ErrCorrupt, worldstate.ErrCorrupt, state.ErrStream}},
		{exitRefused, []error{
			worldstate.ErrRefused, worldstate.ErrStale, worldstate.ErrLocked, opstream.ErrLocked,
			taskdir.ErrBusy, taskdir.ErrPending, state.ErrNotJumped, taskdir.ErrSubagent, taskdir.ErrImported,
			worldstate.ErrUnfinished, probe.ErrBusy, history.ErrBusy, runtime.ErrCallOpen, session.ErrNotApproved, stream.ErrKind,
		}},
		{exitUsage, []error{
			taskdir.ErrNoTask, state.ErrNoStep, workspace.ErrNoDirectory, runtime.ErrSecretName, runtime.ErrNotText, runtime.ErrTaskExists, taskdir.ErrNotLive,
			worldstate.ErrUnknown, opstream.ErrNotFound, knowledgebase.ErrNotFound,
			worldstate.ErrNoDirectory, worldstate.ErrNoPath, worldstate.ErrBadName, loop.ErrRecording, inspect.ErrNoOp,
		}},
		{exitLimit, []error{worldstate.ErrFull, probe.ErrLimit}},
		{exitInterrupted, []error{context.Canceled}}, // before there was a turn to end
	} {
		for _, target := range c.errs {
			if errors.Is(err, target) {
				return c.code
			}
		}
	}
	return exitFailed
}

// jsonFlag gives a command the flag --json, which prints what.
func (a *app) jsonFlag(cmd *cobra.Command, what string) {
	cmd.Flags().BoolVar(&a.json, "json", false, "print "+what)
}

// printJSON writes v as one line of JSON.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// show prints v as JSON where --json is given, and otherwise as text prints it.
func (a *app) show(v any, text func()) error {
	if a.json {
		return a.printJSON(v)
	}
	text()
	return nil
}

// out is what prints to this process's output.
func (a *app) out() *show.Printer {
	if a.printer.Out == nil {
		a.printer = show.Printer{Out: a.stdout, Err: a.stderr, Width: a.width()}
	}
	return &a.printer
}

func (a *app) printf(format string, args ...any) { a.out().Printf(format, args...) }
func (a *app) println(args ...any)               { a.out().Println(args...) }
func (a *app) notef(format string, args ...any)  { a.out().Notef(format, args...) }
