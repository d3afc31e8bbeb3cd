//go:build unix

package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"anamnesis/anamnesis/attention"
	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/tokens"
	"anamnesis/cmd/internal/exit"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"

	"github.com/spf13/cobra"
)

// probeFlags are the flags of `eas probe`.
type probeFlags struct {
	probe.Options
	model, baseURL, record string
	families               []string
	fresh, yes, accept     bool
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
	fl.StringVar(&f.record, "record", "", "file that records the outcomes (default: in the state home)")
	fl.BoolVar(&f.fresh, "fresh", false, "forget the outcomes of an earlier run")
	fl.BoolVar(&f.yes, "yes", false, "agree to the cost")
	fl.BoolVar(&f.accept, "accept", false, "write the result into your overlay")
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

func (f *probeFlags) check() error {
	for _, n := range []struct {
		flag  string
		value int
		least int
	}{
		{"longest", f.Longest, probe.BaseLength}, {"window", f.Window, 0}, {"reply-tokens", f.ReplyTokens, 1},
		{"max-calls", f.MaxCalls, 0}, {"max-tokens", f.MaxTokens, 0}, {"at-once", f.AtOnce, 1},
	} {
		if n.value < n.least {
			return exit.Usagef("eas probe: --%s %d: want at least %d", n.flag, n.value, n.least)
		}
	}
	for _, name := range f.families {
		if !slices.Contains(probe.Families(), probe.Family(name)) {
			return exit.Usagef("eas probe: --families %q: the families are %v", name, probe.Families())
		}
		f.Families = append(f.Families, probe.Family(name))
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
	span, err := svc.Span(".", m.Lookup)
	if err != nil {
		return err
	}
	if span.Advertised = cmp.Or(f.Window, span.Advertised); span.Advertised == 0 {
		return exit.Usagef("eas probe: the table does not know the window of %s: add --window", m.Lookup)
	}
	f.Window = span.Advertised
	count, err := tokens.ForEncoding(span.Encoding)
	if err != nil {
		return err
	}
	f.Count = count.Count
	f.record = cmp.Or(f.record, eas.ProbeRecord(svc.Home, m.Name, f.Seed))
	if f.fresh {
		if err := os.Remove(f.record); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("eas probe: --fresh: %w", err)
		}
	}
	f.Record, err = probe.OpenRecord(f.record, m.Name, &f.Options)
	if errors.Is(err, probe.ErrOtherRun) {
		return exit.Usagef("eas probe: %v; --fresh starts over, --record names another file", err)
	}
	if err != nil {
		return err
	}
	defer f.Record.Close()
	if err := a.agreeToCost(ctx, f, m, span); err != nil {
		return err
	}
	res, failed := a.runProbe(ctx, m, f.Options)
	res.Model = m.Lookup
	rep, err := eas.Report(svc.Home, span, f.record, res, f.accept)
	if err == nil {
		err = a.show(rep, func() { a.printf("%s", rep.Text(f.ReplyTokens)) })
	}
	if err != nil || failed == nil {
		return err
	}
	return probeError(ctx, failed)
}

// agreeToCost says what the run can cost and has it agreed to.
func (a *app) agreeToCost(ctx context.Context, f probeFlags, m *session.Model, s attention.Span) error {
	fmt.Fprint(a.stderr, eas.CostText(view.Line(m.Name, a.width()), m.Lookup, s.Encoding, f.Options))
	switch {
	case f.yes:
		return nil
	case !a.interactive():
		return exit.With(exit.Refused, errors.New("eas probe: no terminal to confirm this cost at: add --yes, and --max-tokens or --max-calls to bound it"))
	}
	answer, err := a.askLine(ctx, "Continue? (y/n) ")
	if err != nil {
		return err
	}
	if !isYes(answer) {
		return exit.With(exit.Refused, errors.New("eas probe: not agreed to; nothing was asked"))
	}
	return nil
}

func isYes(s string) bool {
	s = strings.ToLower(strings.TrimSpace(s))
	return s == "y" || s == "yes"
}

// askLine asks the user at the terminal for a line. An end of input is an
// empty line.
func (a *app) askLine(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.stderr, question)
	type read struct {
		line string
		err  error
	}
	got := make(chan read, 1)
	go func() { // ends with the line, or with the process: a terminal's read cannot be called back
		if a.lines == nil {
			a.lines = bufio.NewReader(a.stdin)
		}
		line, err := a.lines.ReadString('\n')
		got <- read{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", exit.With(exit.Interrupted, errors.New("interrupted"))
	case r := <-got:
		return strings.TrimSpace(r.line), nil
	}
}

// runProbe measures, with a line that says how far it is.
func (a *app) runProbe(ctx context.Context, m *session.Model, o probe.Options) (probe.Result, error) {
	show := func(probe.Progress) {}
	if view.IsTerminal(a.stderr) {
		p := view.NewProgress(a.stderr)
		defer p.Clear()
		show = func(at probe.Progress) {
			text := view.Line(eas.ProbeBar(at), a.width()-1)
			if at.Done == at.Most { // the end of a phase is always seen
				p.Put(text)
				return
			}
			p.Draw(func() string { return text })
		}
	}
	o.Progress = show
	m.OnRetry(func(at model.Attempt) {
		a.notef("asking again: %v", at.Fault)
	})
	return probe.Run(ctx, eas.TextModel{Model: m.Model, Purpose: model.PurposeProbe, ReplyTokens: o.ReplyTokens}, o)
}

// probeError says what ended a probe before its end.
func probeError(ctx context.Context, failed error) error {
	again := "the same command continues from what was measured"
	var fault *model.Fault
	switch {
	case errors.Is(failed, probe.ErrNoBase):
		return fmt.Errorf("eas probe: %w: nothing can be measured with these questions", failed)
	case ctx.Err() != nil:
		return exit.With(exit.Interrupted, fmt.Errorf("eas probe: interrupted; %s", again))
	case errors.As(failed, &fault) && (fault.Kind == model.FaultRefused || fault.Kind == model.FaultScript):
		return exit.Usagef("eas probe: %v; set the key, the address and the model's name right, then %s", failed, again)
	}
	return fmt.Errorf("eas probe: %w; %s", failed, again)
}
