//go:build unix

// Package report reads from a task's record what slash commands print about it.
package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"anamnesis/cmd/internal/page/patch"
	"anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/tui/paint"
	"anamnesis/cmd/internal/tui/result"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
)

const (
	maxHeadLines = 200 // of an output
	maxTailLines = 150
)

// Diff returns what changed from the end of one step to that of another.
func Diff(ctx context.Context, svc *session.Service, task string, from, to int) (string, error) {
	w, ends, _, err := svc.StepWorlds(task, from, to)
	if err != nil {
		return "", err
	}
	defer w.Close()
	changes, err := session.Changes(ctx, w, ends[0], ends[1], nil)
	if err != nil {
		return "", err
	}
	if len(changes) == 0 {
		return paint.Faint.Render(fmt.Sprintf("nothing differs between step %d and step %d", from, to)), nil
	}
	var text patch.Buffer
	if err := w.Patch(ctx, &text, changes); err != nil && !errors.Is(err, patch.ErrFull) {
		return "", err
	}
	return strings.Join(paint.Patch(text.String()), "\n"), nil
}

// Out returns the output of the commands of a step; below 0, of the last command.
func Out(svc *session.Service, task string, step int) (string, error) {
	var texts []string
	var ran []op.Range // steps
	calls := make(map[string]string)
	err := svc.Ops(task, 0, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.ToolCalled:
			calls[b.Call] = b.Args
		case *op.ToolReturned:
			if !result.Prints(b) {
				break
			}
			at := uint64(o.Step)
			if n := len(ran); n > 0 && at <= ran[n-1].Last+1 {
				ran[n-1].Last = at
			} else {
				ran = append(ran, op.Range{First: at, Last: at})
			}
			switch {
			case step < 0:
				texts = nil
			case o.Step != step:
				return nil
			}
			lines := term.Shortened(result.ToUser(term.Result(b.Text)), maxHeadLines, maxTailLines, int(b.Cut),
				fmt.Sprintf(": 'anamnesis show %d' at a shell", o.Seq))
			command := term.Clean(cmp.Or(term.Command(calls[b.Call]), b.Name+" "+calls[b.Call]))
			lines = append([]string{paint.Bold.Render("$ " + command)}, lines...)
			texts = append(texts, strings.Join(append(lines, paint.Faint.Render(result.Exited(b))), "\n"))
		}
		return nil
	})
	switch {
	case err != nil:
	case len(ran) == 0:
		return paint.Faint.Render("no command has run yet"), nil
	case len(texts) == 0:
		err = fmt.Errorf("/out %d: the step ran no command; these steps did: %s", step,
			strings.ReplaceAll(strings.Trim(fmt.Sprint(ran), "[]"), " ", ", "))
	}
	return strings.Join(texts, "\n\n"), err
}

// Thoughts returns the model's reasoning in a step's reply; below 0, in those since the last request.
func Thoughts(svc *session.Service, task string, step int) (string, error) {
	var texts []string
	err := svc.Ops(task, 0, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.UserSaid:
			if step < 0 && b.Source != op.SourceSteer {
				texts = nil
			}
		case *op.ModelReplied:
			if t := strings.TrimSpace(b.Reasoning); t != "" && (step < 0 || o.Step == step) {
				texts = append(texts, paint.Faint.Render(fmt.Sprintf("∴ step %d", o.Step))+"\n"+term.Clean(t))
			}
		}
		return nil
	})
	if err == nil && len(texts) == 0 {
		return paint.Faint.Render("the model sent no thoughts"), nil
	}
	return strings.Join(texts, "\n\n"), err
}

func Cards(svc *session.Service, task string) (string, error) {
	var lines, written []string
	err := svc.Ops(task, 0, func(o op.Op) error {
		switch b := o.Body.(type) {
		case *op.CardsRecalled:
			for _, c := range b.Cards {
				lines = append(lines, fmt.Sprintf("%s %s  %s", paint.Faint.Render("recalled"),
					term.Clean(c.ID), term.Clean(c.Topic)))
			}
		case *op.PassDone:
			written = append(written, b.Cards...)
		case *op.RepairsFound:
			written = append(written, b.Cards...)
		}
		return nil
	})
	if len(lines)+len(written) == 0 {
		return paint.Faint.Render("no card was recalled or written in this task"), err
	}
	store, unread := svc.Cards("", knowledgebase.Options{})
	if unread == nil {
		defer store.Close()
	}
	for _, id := range written {
		line := paint.Cyan.Render("written  ") + term.Clean(id)
		if unread == nil {
			if c, err := store.Get(id); err == nil {
				line += fmt.Sprintf("  %s %s", term.Clean(c.Topic), paint.Faint.Render("("+string(c.State)+")"))
			}
		}
		lines = append(lines, line)
	}
	return strings.Join(append(lines, paint.Faint.Render(
		"'anamnesis kb show ID' shows one, 'anamnesis kb review' reviews drafts")), "\n"), err
}
