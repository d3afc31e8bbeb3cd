//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/settings"
	"anamnesis/cmd/internal/tui"
	"anamnesis/orchestrator/session"
)

// sit configures the verb without a name: a session at the terminal.
func (a *app) sit(root *cobra.Command) {
	var f agentFlags
	var last, pick bool
	f.register(root)
	f.registerNew(root)
	root.Flags().VisitAll(func(fl *pflag.Flag) {
		fl.Hidden = !slices.Contains([]string{"model", "approval", "dir", "eas", "print"}, fl.Name)
	})
	root.Flags().BoolVarP(&last, "continue", "c", false, "continue the latest task of the directory")
	root.Flags().BoolVarP(&pick, "resume", "r", false, "pick a task of the directory to continue")
	root.Use = `anamnesis ["REQUEST"]`
	root.Long = "Agents that go back without forgetting.\n\n" +
		"On a terminal, 'anamnesis' opens a session in the directory, and 'anamnesis \"REQUEST\"' starts one with a request.\n" +
		"It stays after an answer. Text piped into the command is the request, or follows it. The verbs below are for scripts, and for looking at what was recorded.\n" +
		"'anamnesis run --help' lists all flags of a session."
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 && (f.print || strings.ContainsAny(args[0], " \t\n")) || len(args) == 0 {
			return nil
		}
		return fmt.Errorf("%q is not a request", args[0]) // replaced by what complete adds
	}
	root.RunE = func(cmd *cobra.Command, args []string) error {
		script := f.print || f.output != "text"
		if err := f.check(cmd.Flags().Changed); err != nil {
			return err
		}
		var err error
		if f.Text, err = a.tty().Request(cmd.Context(), strings.Join(args, ""), console.Need(!last && !pick)); err != nil {
			return err
		}
		if script || !a.tty().Drawable() {
			return a.sitPlain(cmd.Context(), f, last, pick)
		}
		svc, set, err := a.configured(f.Dir)
		if err != nil {
			return err
		}
		o := tui.Options{Text: f.Text, Pick: pick}
		if last {
			if o.Task, err = svc.LastOwnTask(f.Dir); err != nil {
				return err
			}
		}
		return a.draw(cmd.Context(), svc, set, f, o)
	}
}

// sitPlain is a session on a terminal that is not drawn on, or one turn without a terminal.
func (a *app) sitPlain(ctx context.Context, f agentFlags, last, pick bool) error {
	a.stay = a.interactive() && !f.print && f.output == "text"
	if !a.stay && pick {
		return exit.Usagef("-r needs a terminal: 'anamnesis tasks' lists the tasks, 'anamnesis resume TASK' continues one")
	}
	if !a.stay && !last && f.Text == "" {
		return exit.Usagef("no request: give it as an argument, as in 'anamnesis run \"…\"', or on standard input; a session needs a terminal")
	}
	task, text := "", f.Text
	if a.stay {
		svc, _, err := a.configured(f.Dir)
		if err == nil {
			task, text, err = a.tty().Open(ctx, svc, console.Opening{Dir: f.Dir, Text: text, Last: last, Pick: pick})
		}
		if err != nil || task == "" && text == "" {
			return err
		}
	}
	if f.Text = text; task == "" && !last {
		return a.run(ctx, f)
	}
	return a.resume(ctx, f, slices.DeleteFunc([]string{task, text}, func(s string) bool { return s == "" }))
}

// draw shows a session at the terminal.
func (a *app) draw(ctx context.Context, svc *session.Service, set *settings.Settings, f agentFlags, o tui.Options) error {
	asked := f
	o.Settings = f.Settings
	set.Limits(&o.Settings)
	set.Request(&f.Request)
	if text := set.Warning(); text != "" {
		a.warn(text)
	}
	if err := svc.Check(&f.Request); err != nil {
		return err
	}
	o.Service, o.Request, o.Theme, o.Version = svc, f.Request, set.Theme(), version
	o.In, o.Out = a.stdin.(*os.File), a.stdout.(*os.File)
	if o.Task == "" && o.Text == "" && !o.Pick { // before anything is typed
		name := f.Model + f.Default.Model // without one, the user chooses; a script takes the first of Ollama's
		if _, err := svc.ChooseModel(ctx, name, f.BaseURL, ""); errors.Is(err, session.ErrNoModel) || err == nil && name == "" {
			return a.drawOffered(ctx, set, asked, o)
		}
	}
	res, err := tui.Run(ctx, o)
	switch {
	case err != nil:
		return err
	case errors.Is(res.Err, session.ErrNoModel):
		return a.drawOffered(ctx, set, asked, o)
	case res.Err != nil && o.Once:
		return exit.Seen(res.Err)
	case res.Ran && o.Once:
		return console.Ended(res.Task, res.Last)
	}
	return nil
}

// drawOffered shows the session with the model that the user chooses of those found.
func (a *app) drawOffered(ctx context.Context, set *settings.Settings, f agentFlags, o tui.Options) error {
	if taken, err := a.tty().Welcome(ctx, set, f.Model); !taken {
		return err
	}
	svc, set, err := a.configured(f.Dir)
	if err != nil {
		return err
	}
	return a.draw(ctx, svc, set, f, o)
}
