//go:build unix

package console

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

// FromTerminal says in the record where the user gave a command to a running task.
const FromTerminal = "another terminal"

// followPause is how long an attached terminal waits for new operations.
const followPause = 200 * time.Millisecond

// Attach shows a task that another process runs, from the beginning of its present step until that process ends or
// ctx does. On a terminal it sends the lines that the user types: an answer if the task asks, and otherwise words to
// the agent.
func (c *Console) Attach(ctx context.Context, svc *session.Service, task string) error {
	st, err := svc.State(task)
	if err != nil {
		return err
	}
	f, err := svc.Follow(task)
	if err != nil {
		return err
	}
	defer f.Close()
	dir, last := st.Opened.Dir, st.Steps.At(st.Current).Last
	live := svc.Live(task) != 0
	if live {
		c.notef("task %s at step %d: %s", task, st.Current, view.Line(taskdir.Title(st.Said.First), c.Width()))
	}
	p := view.NewText(nil, c.Out, c.Width(), dir, view.WithOutputs)
	var typed <-chan string
	if live && c.Interactive() {
		c.notef("a line that you type answers what the task asks or goes to the agent; /answer …, /stop; Ctrl-C " +
			"leaves the task running")
		typed = c.typed()
	}
	var questions state.Questions
	for live {
		live = svc.Live(task) != 0 // asked first, so that the last operations of a process are read
		err := f.Next(func() {}, func(o op.Op) error {
			questions.Fold(o)
			if o.Seq > last {
				last = o.Seq
				c.attached(p, task, o, dir)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if !live {
			break
		}
		select {
		case <-ctx.Done():
			c.notef("%s runs on; 'anamnesis attach %s' shows it again", task, task)
			return nil
		case text := <-typed:
			if err := send(ctx, svc, task, questions.Open(), text); err != nil {
				c.notef("%s", exit.Text(err))
			}
		case <-time.After(followPause):
		}
	}
	if st, err = svc.State(task); err != nil {
		return err
	}
	c.notef("task %s is not running (%s); 'anamnesis report %s' says what happened", task, st.Standing(false), task)
	return nil
}

// attached shows an operation of another process's task.
func (c *Console) attached(p view.Printer, task string, o op.Op, dir string) {
	switch b := o.Body.(type) {
	case *op.ModelReplied:
		if b.Text != "" {
			p.Delta(model.Delta{Text: strings.TrimRight(b.Text, "\n") + "\n"})
		}
	case *op.ModelFailed:
		if b.Wait != nil {
			p.Waiting(state.Outage{Wait: *b.Wait, Error: b.Error}, time.Until(b.Wait.Until))
		}
	case *op.QuestionAsked:
		list := show.Printer{Out: c.Out, Err: c.Err, Width: c.Width()}
		list.Question(task, &state.Question{QuestionAsked: *b, Seq: o.Seq})
		return
	case *op.TurnEnded:
		l := timeline.LineOf(o, dir)
		fmt.Fprintln(c.Out, view.Line(l.Icon+" "+l.Text, c.Width()))
	}
	p.Op(o)
}

// typed returns the lines that the user types, until the input ends: a read cannot be canceled.
func (c *Console) typed() <-chan string {
	lines := make(chan string)
	go func() {
		for s := bufio.NewScanner(c.In); s.Scan(); {
			lines <- s.Text()
		}
	}()
	return lines
}

// send sends a typed line to a running task. asked is the task's open question, if any; a line that does not answer it
// goes to the agent.
func send(ctx context.Context, svc *session.Service, task string, asked *state.Question, text string) error {
	seq, answer := uint64(0), asked != nil
	if answer {
		seq = asked.Seq
	}
	switch word := view.Slash(text); {
	case strings.TrimSpace(text) == "":
		return nil
	case word == "/stop":
		return svc.Stop(ctx, task, FromTerminal)
	case word == "/answer":
		text, answer = strings.TrimPrefix(text, word), true
	case word != "":
		return exit.Usagef("not sent: %s is no command here; the commands are /answer and /stop", word)
	case answer:
		_, err := question.Parse(&asked.QuestionAsked, text)
		answer = err == nil
	}
	if answer {
		_, err := svc.Answer(ctx, task, seq, text, question.FromAttach)
		return err
	}
	return svc.Say(ctx, task, text)
}
