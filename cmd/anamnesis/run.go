//go:build unix

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui"
	"anamnesis/orchestrator/session"
)

func (a *app) runCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   `run "REQUEST"`,
		Short: "Run an agent on a request",
		Long: `Run an agent on a request in a directory, which becomes its reversible world. Text piped into
the command follows the request, or is the request if that is -. On a terminal, typed lines steer the agent. Ctrl-C ends the turn; twice, it
leaves at once. 'resume' continues.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return exit.Usagef("the request is empty")
			}
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			var err error
			if f.Text, err = a.tty().Request(cmd.Context(), args[0], console.Required); err != nil {
				return err
			}
			return a.run(cmd.Context(), f)
		},
	}
	f.register(cmd)
	f.registerNew(cmd)
	return cmd
}

func (a *app) run(ctx context.Context, f agentFlags) error {
	svc, set, err := a.configured(f.Dir)
	if err != nil {
		return err
	}
	if a.tty().Drawable() && !f.print && f.output == "text" {
		return a.draw(ctx, svc, set, f, tui.Options{Text: f.Text, Once: true})
	}
	asked := f
	set.Request(&f.Request)
	if text := set.Warning(); text != "" {
		a.warn(text)
	}
	if err := svc.Check(&f.Request); err != nil {
		return err
	}
	err = a.seat(ctx, f, func(c session.Client) (*session.Session, error) {
		return svc.Start(ctx, f.Request, c)
	})
	if errors.Is(err, session.ErrNoModel) && a.interactive() {
		if taken, err := a.tty().Welcome(ctx, set, asked.Model); !taken {
			return err
		}
		return a.run(ctx, asked)
	}
	return err
}

func (a *app) resumeCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "resume [TASK] [MESSAGE]",
		Short: "Continue a task, after its end, an interruption or a crash",
		Long: `Continue a task from its last acknowledged operation. Without TASK, the directory's last task
continues. A call that was running when the program was killed is reported with unknown outcome
and not repeated.`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.resume(cmd.Context(), f, args)
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) resume(ctx context.Context, f agentFlags, args []string) error {
	svc, set, err := a.configured(f.Dir)
	if err != nil {
		return err
	}
	id, message, err := names.ToResume(svc, f.Dir, args)
	if err != nil {
		return err
	}
	if a.tty().Drawable() && !f.print && f.output == "text" {
		return a.draw(ctx, svc, set, f, tui.Options{Task: id, Text: message, Once: true})
	}
	set.Limits(&f.Settings)
	return a.seat(ctx, f, func(c session.Client) (*session.Session, error) {
		return svc.Resume(ctx, id, message, f.Settings, c)
	})
}

// seat opens a session at this terminal and runs one turn of it.
func (a *app) seat(ctx context.Context, f agentFlags, open func(session.Client) (*session.Session, error)) error {
	keys := a.tty().Keys()
	var p view.Printer
	s, err := open(a.tty().Client(keys, a.warn, func(i session.Info) view.Printer {
		p = a.tty().Announce(console.Show{JSON: f.output == "stream-json", Quiet: f.print}, i, a.warn)
		return p
	}))
	if err != nil {
		return err
	}
	a.warn(s.Opening...)
	if keys != nil {
		keys.Steer(func(line string) {
			if err := s.Say(ctx, line); err != nil {
				a.warn(err.Error())
			}
		})
		defer keys.Steer(nil)
	}
	again, err := a.tty().Turns(ctx, s, p, a.stay)
	if err = session.JoinClose(err, s.Close()); err == nil && again != "" {
		return a.resume(ctx, f, []string{s.Task, again})
	}
	return err
}

// warn prints warnings, one a line.
func (a *app) warn(texts ...string) { a.out().Warn(texts...) }
