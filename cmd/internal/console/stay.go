//go:build unix

package console

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"anamnesis/cmd/internal/names"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/notice"
	"anamnesis/orchestrator/runtime"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"
)

const prompt = "> "

// Opening is what the user starts a session with, at a terminal that is not drawn on.
type Opening struct {
	Dir        string
	Text       string // may be empty
	Last, Pick bool   // continue the directory's latest task, or one that the user picks
}

// Open asks for what an opening lacks. A new task has no id. Without an id and a text the user
// entered nothing.
func (c *Console) Open(ctx context.Context, svc *session.Service, o Opening) (task, text string, err error) {
	switch {
	case o.Last:
		task, err = svc.LastOwnTask(o.Dir)
	case o.Pick:
		task, err = c.pick(ctx, svc, o.Dir)
	}
	if err != nil || o.Text != "" || o.Pick && task == "" {
		return task, o.Text, err
	}
	if task != "" {
		st, err := svc.State(task)
		if err != nil || !st.Waits() {
			return task, "", err // it continues by itself
		}
		c.notef("task %s: %s", task, view.Line(taskdir.Title(st.Said.First), c.Width()))
	}
	c.notef("type a message; an empty line ends the session")
	if text = c.message(ctx); text == "" {
		task = ""
	}
	return task, text, nil
}

// message asks for the next message, empty at the end. The commands of the session that is drawn
// are no messages.
func (c *Console) message(ctx context.Context) string {
	for {
		text, _ := c.Keys().Line(ctx, prompt)
		word := view.Slash(text)
		switch word {
		case "":
			return text
		case "/quit":
			return ""
		}
		c.notef("not sent: %s needs a full terminal; run 'anamnesis jump', 'timeline', 'diff', 'explain' or 'tasks' in another terminal", word)
	}
}

func (c *Console) notef(format string, args ...any) {
	(&show.Printer{Out: c.Err, Err: c.Err, Width: c.Width()}).Notef(format, args...)
}

// pick asks for a task of a directory, by its id or the beginning of it.
func (c *Console) pick(ctx context.Context, svc *session.Service, dir string) (string, error) {
	last, err := svc.LastOwnTask(dir) // its error names what to do without any
	if err != nil {
		return "", err
	}
	rows, err := svc.Tasks()
	if err != nil {
		return "", err
	}
	at := slices.IndexFunc(rows, func(r taskdir.Summary) bool { return r.ID == last })
	where := rows[at].Dir
	rows = slices.DeleteFunc(rows, func(r taskdir.Summary) bool {
		return r.Dir != where ||
			r.Parent != "" || r.Agent != ""
	})
	list := show.Printer{Out: c.Err, Err: c.Err, Width: c.Width()}
	list.Tasks(rows)
	name, _ := c.Keys().Line(ctx, "task to continue, or the beginning of its name: ")
	if name == "" {
		return "", nil
	}
	return names.Task(svc.Home, name)
}

// turn runs a session's turn. If alone is set, Ctrl-C ends only it.
func (c *Console) turn(ctx context.Context, s *session.Session, alone bool) (runtime.Outcome, error) {
	if alone {
		var end context.CancelFunc
		ctx, end = turn(ctx)
		defer end()
		defer context.AfterFunc(ctx, func() { fmt.Fprintln(c.Err) })() // the terminal has shown ^C
	}
	defer context.AfterFunc(ctx, func() {
		if notice.Evicted(ctx) {
			c.notef("asked to stop: a running command may end by itself for a while; a second signal ends it")
		}
	})()
	return s.Run(ctx)
}

// Turns runs a session's turn and returns how it ended. If stay is set, it then runs a turn for
// each line that the user enters, until an empty one; Ctrl-C ends only the turn. If another process has taken the directory
// meanwhile, it returns the line; a session opened anew can send it. report writes what happened in the task.
func (c *Console) Turns(ctx context.Context, s *session.Session, p view.Printer, stay bool, report func() string) (again string, err error) {
	for {
		out, err := c.turn(ctx, s, stay)
		if err != nil {
			return "", err
		}
		p.End(out, s.State(), report())
		err = OutcomeError(s.Task, out)
		if !stay || ctx.Err() != nil {
			return "", err
		}
		if out.Reason == "interrupted" {
			err = fmt.Errorf("%s; everything so far is recorded; type to continue", strings.TrimSuffix("interrupted: "+out.Detail, ": "))
		}
		if err != nil {
			c.notef("%v", err)
		}
		s.Offer()
		text := c.message(ctx)
		if text == "" || !s.Reclaim() {
			return text, nil
		}
		if err := s.Request(ctx, text); err != nil {
			return "", err
		}
	}
}
