//go:build unix

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) loopsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "loops FILE…",
		Short: "Find agents going round in recorded runs",
		Long: "Run the loop detector over recorded runs: tasks of ours by name or by the path of their folder, session files of Claude\n" +
			"Code, Codex, opencode, Gemini CLI and Kimi Code, files of chat messages as OpenAI, Anthropic, Gemini or Ollama have them,\n" +
			"or OpenHands' events and its evaluations' output (JSON or lines of JSON, gzipped or not).",
		Args: cobra.MinimumNArgs(1),
		RunE: a.withHome(func(_ *cobra.Command, args []string, h taskdir.Home) error {
			report, err := inspect.FindLoops(h, args)
			if err != nil {
				return err
			}
			for _, arg := range report.NoCalls {
				a.notef("%s: no tool call could be read; not counted", view.Clean(arg))
			}
			return a.show(report, func() { a.printLoops(report, all) })
		}),
	}
	a.jsonFlag(cmd, "a JSON object")
	cmd.Flags().BoolVar(&all, "all", false, "list runs without a loop, too")
	return cmd
}

func (a *app) printLoops(r inspect.LoopReport, all bool) {
	say := func(format string, args ...any) {
		a.println(strings.TrimRight(view.Clean(fmt.Sprintf(format, args...)), " "))
	}
	for _, row := range r.Runs {
		name := row.File
		if row.Run != "" {
			name += ", run " + row.Run
		}
		if len(row.Findings) == 0 {
			if all {
				say("%s: no loop in %d calls", name, row.Calls)
			}
			continue
		}
		say("%s: flagged at call %d of %d", name, row.Findings[0].At, row.Calls)
		for _, f := range row.Findings {
			say("  call %d: %s: %s (calls %s)", f.At, f.Rule, f.Text, intsText(f.Calls))
		}
		if len(row.Seqs) > 0 {
			say("  the first loop's calls are ops %s", intsText(row.Seqs))
		}
	}
	say("%d of %d runs flagged", r.Flagged, len(r.Runs))
}

func intsText[T int | uint64](in []T) string {
	parts := make([]string, len(in))
	for i, n := range in {
		parts[i] = fmt.Sprint(n)
	}
	return strings.Join(parts, ", ")
}
