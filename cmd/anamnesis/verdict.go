//go:build unix

package main

import (
	"slices"

	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/usage"
	"anamnesis/orchestrator/inspect"

	"github.com/spf13/cobra"
)

func (a *app) verdictCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "verdict TASK good|bad|unknown",
		Short: "Record how a task ended, for the cards it was shown",
		Long: `Record how a task ended. Each card the task was shown counts as helpful or harmful by that, and moves a little up or down
in later searches. Your verdict overrides the task's last check (a test run); 'unknown' withdraws it.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			ending := usage.Ending(args[1])
			if ending != usage.Good && ending != usage.Bad && ending != usage.Unknown {
				return exit.Usagef("verdict %q: say good, bad or unknown", args[1])
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			seen, err := inspect.Experienced(h, args[0])
			if err != nil {
				return err
			}
			store, err := a.openKB(dir, false, knowledgebase.Options{})
			if err != nil {
				return err
			}
			defer store.Close()
			if err := store.Count(seen.Events(args[0], ending, true)...); err != nil {
				return err
			}
			cards := []string{}
			for _, s := range seen.Shown {
				if !slices.Contains(cards, s.Card) {
					cards = append(cards, s.Card)
				}
			}
			return a.show(map[string]any{"task": args[0], "ending": ending, "cards": cards}, func() { a.printf("%s ended %s; cards it was shown: %d\n", args[0], ending, len(cards)) })
		},
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringVar(&dir, "kb", "", "the knowledge base's directory (default: the one of the program's state)")
	return cmd
}
