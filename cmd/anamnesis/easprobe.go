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
	"time"

	"anamnesis/anamnesis"
	"anamnesis/anamnesis/probe"
	"anamnesis/anamnesis/tokens"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/eas"
	"anamnesis/orchestrator/model"
	"anamnesis/orchestrator/session"
	"anamnesis/orchestrator/taskdir"

	"github.com/spf13/cobra"
)

// probeFlags are what `eas probe` is told.
type probeFlags struct {
	model, baseURL         string
	families               []string
	seed                   uint64
	longest, window, reply int
	maxCalls, maxTokens    int
	atOnce                 int
	record                 string
	fresh, yes, accept     bool
}

func (a *app) easProbeCommand() *cobra.Command {
	var f probeFlags
	cmd := &cobra.Command{
		Use:   "probe --model M",
		Short: "Measure a model's effective attention span",
		Long: `Measure over how long a text a model still answers nearly as well as over a short one. Questions and text are
generated from a seed. What it can cost at most is said first and agreed to (--yes, or on a terminal); Ctrl-C
keeps what was measured, and the same command goes on. The result is a proposal: --accept writes it into your
overlay, 'eas reflect' proposes it again.`,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.easProbe(cmd.Context(), f) },
	}
	fl := cmd.Flags()
	fl.StringVar(&f.model, "model", "", "model name, or script:FILE for a recording")
	fl.StringVar(&f.baseURL, "base-url", "", "address of an OpenAI-compatible server (default $OPENAI_BASE_URL)")
	fl.StringSliceVar(&f.families, "families", nil, fmt.Sprintf("kinds of questions (default all: %v)", probe.Families()))
	fl.Uint64Var(&f.seed, "seed", 1, "of questions and text")
	fl.IntVar(&f.longest, "longest", probe.LongestLength, "longest text, tokens")
	fl.IntVar(&f.window, "window", 0, "advertised window, tokens (default: the table's)")
	fl.IntVar(&f.reply, "reply-tokens", probe.DefaultReply, "what a reply may take, thinking included")
	fl.IntVar(&f.maxCalls, "max-calls", 0, "stop before more questions than this")
	fl.IntVar(&f.maxTokens, "max-tokens", 0, "stop before more tokens than this, replies counted at their most")
	fl.IntVar(&f.atOnce, "at-once", probe.DefaultAtOnce, "questions under way together")
	fl.StringVar(&f.record, "record", "", "file that keeps the outcomes (default: in the state home)")
	fl.BoolVar(&f.fresh, "fresh", false, "forget the outcomes of an earlier run")
	fl.BoolVar(&f.yes, "yes", false, "agree to the cost")
	fl.BoolVar(&f.accept, "accept", false, "write the result into your overlay")
	a.jsonFlag(cmd, "one JSON object")
	return cmd
}

func (f probeFlags) check() error {
	for _, n := range []struct {
		flag  string
		value int
		least int
	}{
		{"longest", f.longest, probe.BaseLength}, {"window", f.window, 0}, {"reply-tokens", f.reply, 1},
		{"max-calls", f.maxCalls, 0}, {"max-tokens", f.maxTokens, 0}, {"at-once", f.atOnce, 1},
	} {
		if n.value < n.least {
			return usageError("eas probe: --%s %d: want at least %d", n.flag, n.value, n.least)
		}
	}
	for _, name := range f.families {
		if !slices.Contains(probe.Families(), probe.Family(name)) {
			return usageError("eas probe: --families %q: the families are %v", name, probe.Families())
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
	span, err := svc.Span(".", m.Lookup)
	if err != nil {
		return err
	}
	if span.Advertised = cmp.Or(f.window, span.Advertised); span.Advertised == 0 {
		return usageError("eas probe: the table does not know the window of %s: add --window", m.Lookup)
	}
	count, err := tokens.ForEncoding(span.Encoding)
	if err != nil {
		return err
	}
	o := probe.Options{
		Seed: f.seed, Window: span.Advertised, Longest: f.longest, ReplyTokens: f.reply, AtOnce: f.atOnce,
		MaxCalls: f.maxCalls, MaxTokens: f.maxTokens, Count: count.Count,
	}
	for _, name := range f.families {
		o.Families = append(o.Families, probe.Family(name))
	}
	path := cmp.Or(f.record, eas.ProbeRecord(svc.Home, m.Name, f.seed))
	if f.fresh {
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("eas probe: --fresh: %w", err)
		}
	}
	rec, err := probe.OpenRecord(path, m.Name, &o)
	if errors.Is(err, probe.ErrOtherRun) {
		return usageError("eas probe: %v; --fresh begins anew, --record names another file", err)
	}
	if err != nil {
		return err
	}
	defer rec.Close()
	o.Record = rec
	if err := a.agreeToCost(ctx, f, m, span, &o); err != nil {
		return err
	}
	res, err := a.runProbe(ctx, m, f.reply, o)
	res.Model = m.Lookup
	return a.reportProbe(ctx, svc.Home, f, span, path, res, err)
}

// agreeToCost says what the run can cost and has it agreed to.
func (a *app) agreeToCost(ctx context.Context, f probeFlags, m *session.Model, s anamnesis.Span, o *probe.Options) error {
	c := o.Cost()
	calls, most := c.Calls, c.Tokens
	if f.maxCalls > 0 {
		calls = min(calls, f.maxCalls)
	}
	if f.maxTokens > 0 {
		most = min(most, f.maxTokens)
	}
	lengths := o.Lengths()
	fmt.Fprintf(a.stderr, "probe of %s: texts of %d to %d tokens; at most %d questions and %s tokens (counted in %s, replies at %d each), usually far fewer\n",
		view.Line(m.Name, a.width()), lengths[0], lengths[len(lengths)-1], calls, million(most), encodingNote(m.Lookup, s.Encoding), f.reply)
	if n := o.Record.Len(); n > 0 {
		fmt.Fprintf(a.stderr, "%d questions were answered in an earlier run and are not asked again (--fresh forgets them)\n", n)
	}
	switch {
	case f.yes:
		return nil
	case !a.interactive():
		return &exitError{exitRefused, errors.New("eas probe: nobody is there to agree to this cost: add --yes, and --max-tokens or --max-calls to bound it")}
	}
	answer, err := a.askLine(ctx, "Go on? (y/n) ")
	if err != nil {
		return err
	}
	if !isYes(answer) {
		return &exitError{exitRefused, errors.New("eas probe: not agreed to; nothing was asked")}
	}
	return nil
}

// million is a number of tokens for people.
func million(n int) string {
	if n < 1_000_000 {
		return fmt.Sprintf("%d", n)
	}
	return fmt.Sprintf("%.1f million", float64(n)/1e6)
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
		return "", &exitError{exitInterrupted, errors.New("interrupted")}
	case r := <-got:
		return strings.TrimSpace(r.line), nil
	}
}

// runProbe measures, with a line that says how far it is.
func (a *app) runProbe(ctx context.Context, m *session.Model, reply int, o probe.Options) (probe.Result, error) {
	show := func(probe.Progress) {}
	if view.IsTerminal(a.stderr) {
		p := view.NewProgress(a.stderr)
		defer p.Clear()
		show = func(at probe.Progress) {
			text := view.Line(probeBar(at), a.width()-1)
			if at.Done == at.Most { // the end of a phase is always seen
				p.Put(text)
				return
			}
			p.Draw(text)
		}
	}
	o.Progress = show
	m.OnRetry(func(at model.Attempt) {
		a.notef("asking again: %v", at.Fault)
	})
	return probe.Run(ctx, eas.TextModel{Model: m.Model, Purpose: model.PurposeProbe, ReplyTokens: reply}, o)
}

// probeBar draws a phase of a probe.
func probeBar(at probe.Progress) string {
	const wide = 20
	full := wide * at.Done / max(at.Most, 1)
	return fmt.Sprintf("[%s%s] %s: %d of %d right, %d calls, %s tokens", strings.Repeat("#", full), strings.Repeat(".", wide-full),
		at.Phase, at.Right, at.Done, at.Calls, million(at.Tokens))
}

// reportProbe prints what was found, keeps a finished result for `eas reflect`
// and writes the row when that was asked for.
func (a *app) reportProbe(ctx context.Context, h taskdir.Home, f probeFlags, s anamnesis.Span, record string, res probe.Result, failed error) error {
	rep := eas.ProbeReport{Result: res, At: time.Now().UTC(), Record: record}
	_, score := res.UpTo(res.EAS)
	rep.Interval[0], rep.Interval[1] = probe.Wilson(score.Right, score.N)
	if res.Done {
		row := res.Row(s, rep.At)
		rep.Row = &row
		if err := eas.SaveResult(h, rep); err != nil {
			return err
		}
	}
	if f.accept && rep.Row != nil {
		rep.Written = h.EASOverlay()
		if err := eas.PutRow(rep.Written, *rep.Row, false); err != nil {
			return err
		}
	}
	if a.json {
		if err := a.printJSON(rep); err != nil {
			return err
		}
	} else {
		a.printProbe(f, rep)
	}
	again := "the same command goes on from what was measured"
	var fault *model.Fault
	switch {
	case failed == nil:
		return nil
	case errors.Is(failed, probe.ErrNoBase):
		return fmt.Errorf("eas probe: %w: nothing can be measured with these questions", failed)
	case ctx.Err() != nil:
		return &exitError{exitInterrupted, fmt.Errorf("eas probe: interrupted; %s", again)}
	case errors.As(failed, &fault) && (fault.Kind == model.FaultRefused || fault.Kind == model.FaultScript):
		return usageError("eas probe: %v; set the key, the address and the model's name right, then %s", failed, again)
	}
	return fmt.Errorf("eas probe: %w; %s", failed, again)
}

// printProbe shows a result: what was asked as comments, and the row.
func (a *app) printProbe(f probeFlags, rep eas.ProbeReport) {
	w, res := a.stdout, rep.Result
	for _, b := range res.Bases {
		note := ""
		if !b.Kept {
			note = fmt.Sprintf("  dropped: under %.2f", probe.MinBase)
		}
		fmt.Fprintf(w, "# base  %-10s %3d of %3d right%s\n", b.Family, b.Right, b.N, note)
	}
	tests := slices.SortedFunc(slices.Values(res.Tests), func(x, y probe.Test) int { return x.Length - y.Length })
	for _, t := range tests {
		verdict := "fails"
		if t.Passed {
			verdict = "passes"
		}
		if t.TooLong {
			verdict = "refused as too long"
		}
		fmt.Fprintf(w, "# %-16d %3d of %3d right  %s%s\n", t.Length, t.Right, t.N, verdict, familyScores(t))
	}
	fmt.Fprintf(w, "# %d questions asked, %d known from before; %d prompt and %d reply tokens by the provider's count\n", res.Calls, res.Known, res.Usage.Prompt, res.Usage.Completion)
	if res.Cut > 0 {
		fmt.Fprintf(w, "# %d replies ended at --reply-tokens %d and count as wrong: more may be needed\n", res.Cut, f.reply)
	}
	if rep.Row == nil {
		fmt.Fprintf(w, "# stopped: %s\n", view.Line(res.Stopped, 300))
		if res.EAS > 0 {
			fmt.Fprintf(w, "# so far: at least %d tokens pass", res.EAS)
			if res.FailsAt > 0 {
				fmt.Fprintf(w, ", %d fail", res.FailsAt)
			}
			fmt.Fprintln(w)
		}
		return
	}
	fmt.Fprintf(w, "version: 1\nrows:\n  - %s\n", rep.Row.YAML())
	if rep.Written != "" {
		fmt.Fprintf(w, "# written to %s\n", rep.Written)
	} else {
		fmt.Fprintln(w, "# a proposal: 'anamnesis eas reflect' or --accept writes it")
	}
}

func familyScores(t probe.Test) string {
	var parts []string
	for _, f := range probe.Families() {
		if s := t.Families[f]; s.N > 0 {
			parts = append(parts, fmt.Sprintf("%s %d/%d", f, s.Right, s.N))
		}
	}
	if len(parts) < 2 {
		return ""
	}
	return "  (" + strings.Join(parts, ", ") + ")"
}
