//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/session"
)

// exit prints an error as one clear line and returns the exit code.
func (a *app) exit(err error) int {
	if err == nil {
		return exit.Done
	}
	if errors.As(err, new(*exit.Reported)) {
		return exit.Code(err)
	}
	if exit.Code(err) == exit.Failed && !errors.As(err, new(*exit.Error)) {
		err = session.HomeFault(a.getenv, err)
	}
	code, text := exit.Code(err), exit.TextOf(err, a.printer.Remote)
	if code == exit.Interrupted && errors.Is(err, context.Canceled) {
		text = exit.WithoutSignal(text)
	}
	a.notef("%s", text)
	return code
}

// jsonFlag adds to a command the flag --json, which prints what, and returns the command.
func (a *app) jsonFlag(cmd *cobra.Command, what string) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print "+what)
	return cmd
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// show prints v as JSON with --json, and otherwise as text.
func (a *app) show(v any, text func()) error {
	if a.json {
		return a.printJSON(v)
	}
	text()
	return nil
}

// line returns the line that shows how far long work is.
func (a *app) line() *view.Progress {
	if a.progress == nil {
		a.progress = view.NewProgress(a.stderr)
	}
	return a.progress
}

// out returns the printer of this process's output.
func (a *app) out() *show.Printer {
	if a.printer.Out == nil {
		a.printer = show.Printer{Out: a.stdout, Err: a.stderr, Width: a.width()}
	}
	return &a.printer
}

func (a *app) printf(format string, args ...any) { a.out().Printf(format, args...) }
func (a *app) println(args ...any)               { a.out().Println(args...) }
func (a *app) notef(format string, args ...any)  { a.out().Notef(format, args...) }
