//go:build unix

package main

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/demo"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/session"
)

func (a *app) demoCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Show a task that jumps back without forgetting, and a second one that benefits",
		Long: `Run two tasks on two small Go modules with the same bug. The model's replies are recorded;
files, commands, jump, pass, card and recall are real. Needs the Go toolchain and no network.`,
		RunE: a.withService(func(cmd *cobra.Command, _ []string, svc *session.Service) error {
			return a.demo(cmd.Context(), svc, dir)
		}),
	}
	cmd.Flags().StringVar(&dir, "dir", "", "keep everything below this directory, which must be new or empty")
	return a.jsonFlag(cmd, "one JSON object instead")
}

func (a *app) demo(ctx context.Context, svc *session.Service, dir string) error {
	p := demo.Player{
		Service: svc, Say: a.stdout, Width: a.width(), Warn: a.warn, Ended: console.OutcomeError,
		Client: func(show func(session.Info) view.Printer) session.Client { return a.tty().Client(nil, a.warn, show) },
	}
	if a.json {
		p.Say = io.Discard
	}
	res, err := p.Run(ctx, dir, a.getenv("HOME"))
	if err != nil {
		return err
	}
	return errors.Join(a.show(res, func() { res.Print(a.tty().Styled(), a.width()) }), res.Failed)
}
