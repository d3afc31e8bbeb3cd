//go:build unix

package main

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/cmd/internal/timeline"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/state"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) showCommand() *cobra.Command {
	var transcript bool
	cmd := a.onTask(&cobra.Command{
		Use:   "show [TASK] [SEQ]",
		Short: "Show a task's state, or one of its operations",
	}, 0, 1, func(_ *cobra.Command, svc *session.Service, task string, rest []string) error {
		if transcript {
			return a.out().Content(func(w io.Writer) error {
				out := timeline.NewTranscript(w)
				return errors.Join(svc.Ops(task, 0, out.Add), out.Close())
			})
		}
		if len(rest) == 0 {
			v, err := inspect.Describe(svc.Home, task)
			if err != nil {
				return err
			}
			return a.show(v, func() { a.out().Task(v) })
		}
		seq, err := strconv.ParseUint(rest[0], 10, 64)
		if err != nil || seq == 0 {
			return exit.Usagef("SEQ %q: want the number of an operation, from 1", rest[0])
		}
		return a.showOp(svc.Home, task, seq)
	})
	cmd.Flags().BoolVar(&transcript, "transcript", false, "print the conversation as markdown")
	return a.jsonFlag(cmd, "a JSON object")
}

func (a *app) showOp(h taskdir.Home, id string, seq uint64) error {
	found, err := inspect.Op(h, id, seq)
	if err != nil {
		return err
	}
	kind := op.Kind("unknown")
	if found.Body != nil {
		kind = found.Body.Kind()
	}
	return a.show(map[string]any{"seq": found.Seq, "step": found.Step, "ts": found.Time, "tok": found.Tok, "kind": kind,
		"body": found.Body}, func() {
		a.printf("op %d  %s  step %d  %d tokens  %s\n\n", found.Seq, kind, found.Step, found.Tok,
			found.Time.Format(time.RFC3339))
		a.println(view.Clean(strings.Trim(state.OpText(found), "\n")))
	})
}
