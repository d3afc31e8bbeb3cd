//go:build unix

// Package seat runs an agent's session at this process's terminal: drawn, in plain lines, or as
// one turn without a terminal.
package seat

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/names"
	"anamnesis/cmd/internal/notify"
	"anamnesis/cmd/internal/reportview"
	"anamnesis/cmd/internal/settings"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui"
	"anamnesis/orchestrator/session"
)

// Seat is a terminal with the program's state.
type Seat struct {
	*console.Console
	Configured func(dir string) (*session.Service, *settings.Settings, error)
	Warn       func(texts ...string)
	Version    string
}

// Work is what the user wants to be done, and how it is shown.
type Work struct {
	session.Request
	console.Show
	Last bool   // continue the directory's latest task
	Pick bool   // the user picks the task to continue
	Tree string // name of the worktree to work in, or AnyName; empty: none
}

// AnyName leaves the name of a worktree to the program.
const AnyName = "*"

func (s *Seat) drawn(w Work) bool { return s.Drawable() && w.Show == console.Show{} }

// Interact opens a session that stays after an answer. Without a terminal, it runs one turn.
func (s *Seat) Interact(ctx context.Context, w Work) error {
	if w.Tree != "" {
		return s.inTree(ctx, w, s.Interact)
	}
	if !s.drawn(w) {
		return s.interactPlain(ctx, w)
	}
	svc, set, err := s.Configured(w.Dir)
	if err != nil {
		return err
	}
	o := tui.Options{Text: w.Text, Pick: w.Pick}
	if w.Last {
		if o.Task, err = svc.LastOwnTask(w.Dir); err != nil {
			return err
		}
	}
	return s.draw(ctx, svc, set, w, o)
}

func (s *Seat) interactPlain(ctx context.Context, w Work) error {
	switch {
	case w.Pick:
		return exit.Usagef("-r needs a terminal that can be drawn on: 'anamnesis tasks' lists the tasks, 'anamnesis " +
			"resume TASK' continues one")
	case !w.Last && w.Text == "":
		return exit.Usagef("no request: give it as an argument, as in 'anamnesis run \"…\"', or on standard input; a " +
			"session needs a terminal that can be drawn on")
	case !w.Last:
		return s.Run(ctx, w)
	}
	svc, _, err := s.Configured(w.Dir)
	if err != nil {
		return err
	}
	task, err := svc.LastOwnTask(w.Dir)
	if err != nil {
		return err
	}
	return s.Resume(ctx, w, slices.DeleteFunc([]string{task, w.Text}, func(s string) bool { return s == "" }))
}

func (s *Seat) Run(ctx context.Context, w Work) error {
	if w.Tree != "" {
		return s.inTree(ctx, w, s.Run)
	}
	svc, set, err := s.Configured(w.Dir)
	if err != nil {
		return err
	}
	if s.drawn(w) {
		return s.draw(ctx, svc, set, w, tui.Options{Text: w.Text, Once: true})
	}
	r := w.Request
	if err := s.complete(svc, set, &r); err != nil {
		return err
	}
	err = s.turn(ctx, svc, set, w, func(c session.Client) (*session.Session, error) { return svc.Start(ctx, r, c) })
	if errors.Is(err, session.ErrNoModel) && s.Interactive() {
		if taken, err := s.Welcome(ctx, set, w.Model); !taken {
			return err
		}
		return s.Run(ctx, w)
	}
	return err
}

// complete adds the settings to a request and checks it.
func (s *Seat) complete(svc *session.Service, set *settings.Settings, r *session.Request) error {
	set.Request(r)
	if text := set.Warning(); text != "" {
		s.Warn(text)
	}
	return svc.Check(r)
}

// Resume continues a task. args are the task and a message; both may be missing.
func (s *Seat) Resume(ctx context.Context, w Work, args []string) error {
	svc, set, err := s.Configured(w.Dir)
	if err != nil {
		return err
	}
	var id, message string
	if w.Remote.Address != "" && len(args) > 0 { // this home may not have it
		id, message = args[0], strings.Join(args[1:], "")
	} else if id, message, err = names.ToResume(svc, w.Dir, args); err != nil {
		return err
	}
	if s.drawn(w) {
		return s.draw(ctx, svc, set, w, tui.Options{Task: id, Text: message, Once: true})
	}
	set.Resumed(&w.Settings)
	return s.turn(ctx, svc, set, w, func(c session.Client) (*session.Session, error) {
		return svc.Resume(ctx, id, message, w.Settings, c)
	})
}

// turn opens a session in plain lines and runs its turn.
func (s *Seat) turn(ctx context.Context, svc *session.Service, set *settings.Settings, w Work,
	open func(session.Client) (*session.Session, error)) error {
	keys := s.Keys()
	var p view.Printer
	client := s.Client(keys, s.Warn, func(i session.Info) view.Printer {
		p = s.Announce(w.Show, i, s.Warn)
		return p
	})
	n := notify.New(ctx, set.Notify, notify.Limit)
	defer n.Close(s.Warn)
	opened, err := open(n.Watch(client))
	if err != nil {
		return err
	}
	s.Warn(opened.Opening...)
	if keys != nil {
		keys.Steer(func(line string) {
			if err := opened.Say(ctx, line); err != nil {
				s.Warn(exit.Text(err))
			}
		})
		defer keys.Steer(nil)
	}
	err = s.Turn(ctx, opened, p, func() string {
		if w.Quiet && !w.JSON {
			return ""
		}
		return s.report(ctx, svc, opened.Task)
	})
	return session.JoinClose(err, opened.Close())
}

// report returns what happened in a task whose turn has ended. The user may have ended it.
func (s *Seat) report(ctx context.Context, svc *session.Service, task string) string {
	r, err := svc.Report(context.WithoutCancel(ctx), task)
	if err != nil {
		s.Warn(fmt.Sprintf("no report of task %s: %v", task, err))
		return ""
	}
	return reportview.Text(r, reportview.Options{Columns: s.Width(), End: true})
}

// draw shows a session on the terminal. If there is no model, it offers those found.
func (s *Seat) draw(ctx context.Context, svc *session.Service, set *settings.Settings, w Work, o tui.Options) error {
	o.Settings = w.Settings
	set.Resumed(&o.Settings)
	r := w.Request
	if err := s.complete(svc, set, &r); err != nil {
		return err
	}
	o.Service, o.Request, o.Theme, o.Version = svc, r, set.Theme(), s.Version
	o.In, o.Out = s.In.(*os.File), s.Out.(*os.File)
	if o.Task == "" && o.Text == "" && !o.Pick { // before anything is typed
		name := r.Model + r.Default.Model // without a name the user chooses; a script gets Ollama's first model
		if _, err := svc.ChooseModel(ctx, name, r.BaseURL, ""); errors.Is(err, session.ErrNoModel) ||
			err == nil && name == "" {
			return s.drawOffered(ctx, set, w, o)
		}
	}
	o.Notify = notify.New(ctx, set.Notify, notify.Limit)
	res, err := tui.Run(ctx, o)
	o.Notify.Close(s.Warn)
	if err == nil && res.Ran && o.Once {
		fmt.Fprint(s.Err, "\n"+s.report(ctx, svc, res.Task))
	}
	switch {
	case err != nil:
		return err
	case errors.Is(res.Err, session.ErrNoModel):
		return s.drawOffered(ctx, set, w, o)
	case res.Err != nil && o.Once:
		return exit.Report(res.Err)
	case res.Ran && (o.Once || res.Last.Reason == "evicted"):
		return console.OutcomeError(res.Task, res.Last)
	}
	return nil
}

// drawOffered draws the session with the model that the user chooses of those found.
func (s *Seat) drawOffered(ctx context.Context, set *settings.Settings, w Work, o tui.Options) error {
	if taken, err := s.Welcome(ctx, set, w.Model); !taken {
		return err
	}
	svc, set, err := s.Configured(w.Dir)
	if err != nil {
		return err
	}
	return s.draw(ctx, svc, set, w, o)
}
