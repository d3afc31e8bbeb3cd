//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"anamnesis/anamnesis/facts"
	"anamnesis/anamnesis/quote"
	"anamnesis/cmd/internal/exit"
	"anamnesis/orchestrator/memory"
)

func (a *app) kbFactsCommand() *cobra.Command {
	var forget, address string
	cmd := &cobra.Command{
		Use:   "facts",
		Short: "List what the tasks of this repository showed of it",
		Long: `List what the tasks of the repository you are in showed of it: what runs its tests, what never starts,
what is not installed, what exceeds the time limit, which tests fail anyway. Each line counts the tasks that
bear it out among those that tried; the tasks stand below it. A task is told the facts at its start.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			svc, err := a.service()
			if err != nil {
				return err
			}
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			if address != "" {
				b, _, err := svc.Bucket(address)
				if err != nil {
					return err
				}
				// A bucket that cannot be read is no reason to withhold what this home knows.
				if svc, err = svc.Learn(cmd.Context(), b, dir); err != nil {
					a.warn(err.Error())
				}
			}
			repo, err := memory.OpenFacts(svc.Home, dir)
			if errors.Is(err, facts.ErrDamaged) {
				return fmt.Errorf("%w; 'kb rebuild' counts the tasks again", err)
			} else if err != nil {
				return err
			}
			list := repo.Facts()
			if forget != "" {
				f := facts.Find(list, forget)
				if f == nil {
					return exit.Usagef("kb facts --forget %s: no such fact here; 'kb facts' lists them", forget)
				}
				if err := repo.Correct(f.ID(), ""); err != nil {
					return err
				}
				list = slices.DeleteFunc(list, func(o facts.Fact) bool { return o.ID() == f.ID() })
			}
			return a.show(map[string]any{"facts": list}, func() {
				for _, f := range list {
					a.printf("%s\n  %s\n", f.String(), f.Source())
				}
				if len(list) == 0 {
					a.printf("No facts yet: %s counted, and a fact is what two of them bear out.\n",
						quote.Number(len(repo.Tasks), "task"))
				}
			})
		},
	}
	cmd.Flags().StringVar(&address, "remote", "", "count a bucket's tasks, too: s3://BUCKET/PREFIX or a directory")
	cmd.Flags().StringVar(&forget, "forget", "", "drop a fact for good, named as in the list")
	return a.jsonFlag(cmd, "one JSON object")
}
