//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/probe"
	"anamnesis/cmd/internal/console"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/session"
)

// probeFlags are the flags of `eas probe`.
type probeFlags struct {
	probe.Options
	model, baseURL, file string
	families             []string
	fresh, yes, accept   bool
}

func (a *app) easProbeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe --model M",
		Short: "Measure a model's effective attention span",
		Long: `Measure the length of text up to which a model answers nearly as well as over a short one.
Questions and text are generated from a seed. The highest possible cost is printed first and
needs your consent (--yes, or on a terminal). Ctrl-C keeps what was measured, and the same
command continues. The result is a proposal: --accept writes it into your overlay, 'eas reflect'
proposes it again.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.easProbe(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "model name, or script:FILE for a recording")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.StringSliceVar(&f.families, "families", nil, fmt.Sprintf("kinds of questions (default all: %v)", probe.Families()))
	fl.Uint64Var(&f.Seed, "seed", 1, "seed of questions and text")
	fl.IntVar(&f.Longest, "longest", probe.LongestLength, "longest text, tokens")
	fl.IntVar(&f.Window, "window", 0, "advertised window, tokens (default: the table's)")
	fl.IntVar(&f.ReplyTokens, "reply-tokens", probe.DefaultReply, "token limit of a reply, thinking included")
	fl.IntVar(&f.MaxCalls, "max-calls", 0, "stop before more questions than this")
	fl.IntVar(&f.MaxTokens, "max-tokens", 0, "stop before more tokens than this, replies counted at their limit")
	fl.IntVar(&f.AtOnce, "at-once", probe.DefaultAtOnce, "questions asked in parallel")
	fl.StringVar(&f.file, "record", "", "file that records the outcomes (default: in the state home)")
	fl.BoolVar(&f.fresh, "fresh", false, "forget the outcomes of an earlier run")
	fl.BoolVar(&f.yes, "yes", false, "agree to the cost")
	fl.BoolVar(&f.accept, "accept", false, "write the result into your overlay")
	return a.jsonFlag(cmd, "one JSON object")
}

func (a *app) easProbe(ctx context.Context, f probeFlags) error {
	var err error
	if f.Families, err = eas.Families(f.families); err != nil {
		return err
	}
	if err := eas.CheckProbe(f.Options); err != nil {
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
	f.Window = cmp.Or(f.Window, row.Advertised)
	row.Advertised = f.Window
	if f.file, err = eas.OpenProbe(svc.Home, m.Name, row, &f.Options, f.file, eas.Earlier(f.fresh)); err != nil {
		return err
	}
	defer f.Record.Close()
	if err := a.agreeToCost(ctx, f, m, row); err != nil {
		return err
	}
	res, failed := a.tty().Probe(ctx, m, f.Options, a.notef)
	res.Model = m.Lookup
	rep, err := eas.Report(svc.Home, row, f.file, res)
	if err == nil && f.accept {
		err = rep.Accept(svc.Home)
	}
	if err == nil {
		err = a.show(rep, func() { a.printf("%s", rep.Text(f.ReplyTokens)) })
	}
	if err != nil || failed == nil {
		return err
	}
	return console.ProbeError(ctx, failed)
}

// agreeToCost shows the possible cost of the run and asks the user to agree.
func (a *app) agreeToCost(ctx context.Context, f probeFlags, m *session.Model, s attention.EAS) error {
	fmt.Fprint(a.stderr, eas.CostText(view.Line(m.Name, a.width()), m.Lookup, s.Encoding, f.Options))
	if f.yes {
		return nil
	}
	unasked := exit.With(exit.Refused, errors.New("eas probe: no terminal to confirm this cost at: add --yes, and --max-tokens or --max-calls to bound it"))
	return a.tty().Agree(ctx, "Continue? (y/n) ", unasked, "eas probe: not agreed to; nothing was asked")
}
