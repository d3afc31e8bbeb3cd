//go:build unix

package main

import (
	"github.com/spf13/cobra"

	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/taskdir"
)

func (a *app) loopsCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "loops RUN…",
		Short: "Find loops in recorded runs",
		Long: `Run the loop detector over recorded runs: tasks (by name or folder), session files of Claude
Code, Codex, opencode, Gemini CLI and Kimi Code, chat messages in the formats of OpenAI,
Anthropic, Gemini and Ollama, and events and evaluation output of OpenHands (JSON or lines of
JSON, gzipped or not).`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.withHome(func(_ *cobra.Command, args []string, h taskdir.Home) error {
			report, err := inspect.FindLoops(h, args)
			if err != nil {
				return err
			}
			for _, arg := range report.NoCalls {
				a.notef("%s: no tool call could be read; not counted", view.Clean(arg))
			}
			return a.show(report, func() { a.out().Loops(report, all) })
		}),
	}
	a.jsonFlag(cmd, "a JSON object")
	cmd.Flags().BoolVar(&all, "all", false, "list runs without a loop, too")
	return cmd
}
