//go:build unix

package main

import (
	"slices"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/usage"
	"anamnesis/orchestrator/inspect"
	"anamnesis/orchestrator/session"
)

func (a *app) verdictCommand() *cobra.Command {
	var dir string
	cmd := a.onTask(&cobra.Command{
		Use:   "verdict [TASK] good|bad|unknown",
		Short: "Record how a task ended, for the cards it was shown",
		Long: `Record how a task ended. Each card that the task was shown counts as helpful or harmful
accordingly, and moves slightly up or down in later searches; 'unknown' withdraws the verdict.
Nothing else counts: that a task ended well says nothing of the cards that it was shown.`,
	}, 1, 1, func(_ *cobra.Command, svc *session.Service, task string, rest []string) error {
		ending := usage.Ending(rest[0])
		if ending != usage.Good && ending != usage.Bad && ending != usage.Unknown {
			return exit.Usagef("verdict %q: say good, bad or unknown", rest[0])
		}
		seen, err := inspect.Experienced(svc.Home, task)
		if err != nil {
			return err
		}
		store, err := a.openKB(dir, existing, knowledgebase.Options{})
		if err != nil {
			return err
		}
		defer store.Close()
		if err := store.Count(seen.Events(task, ending)...); err != nil {
			return err
		}
		cards := []string{}
		for _, s := range seen.Shown {
			if !slices.Contains(cards, s.Card) {
				cards = append(cards, s.Card)
			}
		}
		return a.show(map[string]any{"task": task, "ending": ending, "cards": cards},
			func() { a.printf("%s ended %s; cards it was shown: %d\n", task, ending, len(cards)) })
	})
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringVar(&dir, "kb", "", "the knowledge base's directory (default: in the program's state)")
	return cmd
}
