//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/orchestrator/session"
)

// usageArgs turns cobra's argument errors into usage errors; complete gives it to
// every command.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return exit.Usagef("%v; see '%s --help'", err, cmd.CommandPath())
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
			return exit.Usagef("-%s: no number below 0 is wanted here; see '%s --help'", n, command)
		}
	}
	var value *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &value) || !errors.As(err, &number) || value.GetFlag().Value.Type() == "bool" {
		return exit.Usagef("%v; see '%s --help'", err, command)
	}
	problem := "not a number"
	if errors.Is(number, strconv.ErrRange) {
		problem = "a number too large to work with"
	}
	return exit.Usagef("--%s %q: %s; see '%s --help'", value.GetFlag().Name, value.GetValue(), problem, command)
}

// exit prints an error as one clear line and returns the exit code.
func (a *app) exit(err error) int {
	if err == nil {
		return exit.Done
	}
	if errors.As(err, new(*exit.Shown)) {
		return exit.Code(err)
	}
	if exit.Code(err) == exit.Failed && !errors.As(err, new(*exit.Error)) {
		err = session.HomeFault(a.getenv, err)
	}
	code, text := exit.Code(err), err.Error()
	if code == exit.Interrupted && errors.Is(err, context.Canceled) {
		text = exit.WithoutSignal(text)
	}
	if errors.Is(err, knowledgebase.ErrNotFound) {
		text += "; 'anamnesis kb list' shows the cards there are"
	}
	a.notef("%s", text)
	return code
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
