//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/agent"
	"anamnesis/orchestrator/guard"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
)

// maxRequestBytes bounds a request read from standard input.
const maxRequestBytes = 1 << 20

func (a *app) runCommand() *cobra.Command {
	var f agentFlags
	var lasting taskFlags
	cmd := &cobra.Command{
		Use:   `run "REQUEST"`,
		Short: "Run an agent on a request",
		Long: `Run an agent on a request (- reads it from standard input) in a directory, which becomes its
reversible world. On a terminal, typed lines steer the agent. Ctrl-C ends the turn; twice, it
leaves at once. 'resume' continues.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == "-" {
				text, err := io.ReadAll(io.LimitReader(a.stdin, maxRequestBytes))
				if err != nil {
					return exit.Usagef("read the request: %v", err)
				}
				args[0] = string(text)
			}
			if strings.TrimSpace(args[0]) == "" {
				return exit.Usagef("the request is empty: say what is to be done")
			}
			if err := f.read(cmd.Flags().Changed, &lasting); err != nil {
				return err
			}
			f.Text = args[0]
			return a.run(cmd.Context(), f)
		},
	}
	f.register(cmd)
	f.registerNew(cmd)
	lasting.register(cmd)
	return cmd
}

func (a *app) run(ctx context.Context, f agentFlags) error {
	svc, set, err := a.configured(f.Dir)
	if err != nil {
		return err
	}
	if a.drawable() && !f.print && f.output == "text" {
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
		if taken, err := a.welcome(ctx, set); !taken {
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
	id, message, err := resumeTarget(svc, f.Dir, args)
	if err != nil {
		return err
	}
	if a.drawable() && !f.print && f.output == "text" {
		return a.draw(ctx, svc, set, f, tui.Options{Task: id, Text: message, Once: true})
	}
	set.Limits(&f.Settings)
	return a.seat(ctx, f, func(c session.Client) (*session.Session, error) {
		return svc.Resume(ctx, id, message, f.Settings, c)
	})
}

// resumeTarget reads [TASK] [MESSAGE]: a single argument that names no task
// and holds a space is a message to the directory's last task.
func resumeTarget(svc *session.Service, dir string, args []string) (id, message string, err error) {
	if len(args) == 2 || len(args) == 1 && !strings.ContainsAny(args[0], " \t\n") {
		id, err = names.Task(svc.Home, args[0])
		return id, strings.Join(args[1:], ""), err
	}
	if len(args) == 1 {
		message = args[0]
	}
	id, err = svc.LastOwnTask(dir)
	return id, message, err
}

// seat opens a session at this terminal and runs one turn of it.
func (a *app) seat(ctx context.Context, f agentFlags, open func(session.Client) (*session.Session, error)) error {
	keys := a.typed()
	var p view.Printer
	s, err := open(a.client(keys, func(i session.Info) view.Printer {
		p = a.announce(f, i)
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
	out, err := s.Run(ctx)
	if err == nil {
		p.End(out, s.State())
		err = outcomeError(s.Task, out)
	}
	return session.JoinClose(err, s.Close())
}

// client is the terminal's side of a task. show makes the printer when the task is
// known.
func (a *app) client(keys *view.Lines, show func(session.Info) view.Printer) session.Client {
	var p view.Printer
	c := session.Client{
		Started:  func(i session.Info) { p = show(i) },
		Op:       func(o op.Op) { p.Op(o) },
		Delta:    func(d model.Delta) { p.Delta(d) },
		Progress: func(c op.Call, text string) { p.Progress(c, text) },
		Passing:  func(b op.PassBegun) { p.Passing(b) },
		Retry:    func(at model.Attempt) { p.Retry(at) },
		Scan:     view.NewProgress(a.stderr).TaskScan,
		Note:     func(text string) { a.warn(text) },
	}
	if keys != nil {
		c.Approve, c.Ask, c.Trust = keys.Approve, keys.Ask, keys.Trust
	}
	return c
}

// warn prints warnings, one a line.
func (a *app) warn(texts ...string) { a.out().Warn(texts...) }

// typed is what a user types at a terminal that is not drawn on; nil: nobody sits there.
func (a *app) typed() *view.Lines {
	if !a.interactive() {
		return nil
	}
	return view.NewLines(a.stdin, a.stderr)
}

// announce says what is about to run, before anything else, and returns the
// printer that shows it.
func (a *app) announce(f agentFlags, s session.Info) view.Printer {
	a.warn(s.Warnings...)
	if s.Notice != "" {
		a.warn(s.Notice)
	}
	for _, m := range guard.Missing() {
		a.warn("on this platform: " + m)
	}
	if f.output == "stream-json" {
		return view.NewJSON(a.stdout, s)
	}
	if s.Banner != "" {
		fmt.Fprintln(a.stderr, s.Banner)
	}
	if real, err := session.RealDir(s.Dir); err == nil { // otherwise the task says what is wrong with it
		s.Dir = real
	}
	if f.print {
		return view.NewText(a.stdout, io.Discard, a.width(), s.Dir)
	}
	who := ""
	if s.Agent != "" && s.Agent != agent.Default {
		who = "agent " + s.Agent + " · "
	}
	fmt.Fprintln(a.stderr, view.Line(fmt.Sprintf("task %s · %s%s · EAS %d (%s) · approval %s", s.Task, who, s.Model, s.EAS, s.EASFrom, s.Approval), a.width()))
	answer := a.stdout
	if isTerminal(a.stdout) && a.interactive() {
		answer = nil // the same screen shows the progress
	}
	return view.NewText(answer, a.stderr, a.width(), s.Dir)
}

// outcomeError turns the end of a turn into the process's exit.
func outcomeError(task string, out runtime.Outcome) error {
	again := fmt.Sprintf("'anamnesis resume %s' continues it", task)
	var fault *model.Fault
	if errors.As(out.Err, &fault) && (fault.Status == 401 || fault.Status == 403 || fault.Status == 404) {
		return exit.Usagef("task %s: %v; set the key, the address and the model's name right, then %s", task, out.Err, again)
	}
	switch out.Reason {
	case "done", "idle":
		return nil
	case "interrupted":
		return exit.With(exit.Interrupted, fmt.Errorf("task %s: interrupted; %s", task, again))
	case "limit":
		return exit.With(exit.Limit, fmt.Errorf("task %s: stopped by a limit: %s; %s", task, out.Detail, again))
	case "stuck":
		return exit.With(exit.Stuck, fmt.Errorf("task %s: stuck: %s", task, out.Detail))
	}
	if out.Err != nil {
		return exit.With(exit.Code(out.Err), fmt.Errorf("task %s: %w; %s", task, out.Err, again))
	}
	return fmt.Errorf("task %s: %s; %s", task, out.Detail, again)
}
