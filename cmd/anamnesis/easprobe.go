//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/tokens"
	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/session"
)

type probeFlags struct {
	probe.Options
	model, baseURL string
	yes, accept    bool
}

func (a *app) easProbeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe --model M",
		Short: "Measure a model's effective attention span",
		Long: `Measure the length of text up to which a model answers nearly as well as over a short one.
Questions and text are generated from a seed. The highest possible cost is printed first and
needs your consent (--yes, or on a terminal); --longest bounds it. The result is a proposal:
--accept writes it into your overlay, 'eas reflect' proposes it again.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.easProbe(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "model name, or script:FILE for a recording")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.Uint64Var(&f.Seed, "seed", 1, "seed of questions and text")
	fl.IntVar(&f.Longest, "longest", probe.DefaultLongest,
		"longest text, tokens; a quarter and a sixteenth of it are asked, too")
	fl.IntVar(&f.Window, "window", 0, "advertised window, tokens (default: the table's)")
	fl.IntVar(&f.ReplyTokens, "reply-tokens", probe.DefaultReply, "token limit of a reply, thinking included")
	fl.BoolVar(&f.yes, "yes", false, "agree to the cost")
	fl.BoolVar(&f.accept, "accept", false, "write the result into your overlay")
	return a.jsonFlag(cmd, "one JSON object")
}

// check rejects numbers that no probe can have.
func (f *probeFlags) check() error {
	for _, n := range []struct {
		flag         string
		value, least int
	}{
		{"longest", f.Longest, probe.BaseLength}, {"window", f.Window, 0},
		{"reply-tokens", f.ReplyTokens, 1},
	} {
		if n.value < n.least {
			return exit.Usagef("eas probe: --%s %d: want at least %d", n.flag, n.value, n.least)
		}
	}
	return nil
}

func (a *app) easProbe(ctx context.Context, f probeFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	svc, err := a.service()
	if err != nil {
		return err
	}
	m, err := a.chooseModel(ctx, f.model, f.baseURL)
	if err != nil {
		return err
	}
	row, err := svc.EAS(".", m.Lookup)
	if err != nil {
		return err
	}
	if f.Window = cmp.Or(f.Window, row.Advertised); f.Window == 0 {
		return exit.Usagef("eas probe: the table does not know the window of %s: add --window", row.Model)
	}
	row.Advertised = f.Window
	counter, err := tokens.ForEncoding(row.Encoding)
	if err != nil {
		return err
	}
	f.Count = counter.Count
	if err := a.agreeToCost(ctx, f, m, row); err != nil {
		return err
	}
	// A probe that was stopped has cost tokens: what it measured is stored and shown before its error.
	res, failed := a.tty().Probe(ctx, m, f.Options, a.notef)
	res.Model = m.Lookup
	rep, err := eas.StoreResult(svc.Home, row, res)
	if err == nil && f.accept {
		err = rep.Accept(svc.Home)
	}
	if err == nil {
		err = a.show(rep, func() { a.out().EASProbe(rep, f.ReplyTokens) })
	}
	if err != nil || failed == nil {
		return err
	}
	return console.ProbeError(ctx, failed)
}

// agreeToCost shows the possible cost of the run and asks the user to agree.
func (a *app) agreeToCost(ctx context.Context, f probeFlags, m *session.Model, s attention.EAS) error {
	a.out().EASProbeCost(view.Line(m.Name, a.width()), s, f.Options)
	if f.yes {
		return nil
	}
	unasked := exit.With(exit.Refused,
		errors.New("eas probe: no terminal to confirm this cost at: add --yes, and --longest to bound it"))
	return a.tty().Agree(ctx, "Continue? (y/n) ", unasked, "eas probe: not agreed to; nothing was asked")
}
