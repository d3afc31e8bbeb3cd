//go:build unix

package main

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	"anamnesis/cmd/internal/show"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/search"
	"anamnesis/orchestrator/session"
)

func (a *app) searchCommand() *cobra.Command {
	var q search.Query
	var here bool
	cmd := &cobra.Command{
		Use:   "search WORDS…",
		Short: "Find what was asked, done and met in all tasks and imported sessions",
		Long: `Find requests, reasons of jumps, calls, errors and answers of all tasks in this home, sessions of
other agents that were recorded or imported among them. Files of other agents that were not imported are not read.
The best place of each task is shown, the best task first, with the commands that open it and go back to it.

Any of the WORDS is looked for, and more of them rank higher. '"a b"' is a phrase. A path or an identifier is found
whole, and by its parts. The index is search.db in the state folder, which can be deleted; a search reads what was
recorded since the last one.`,
		Args: cobra.MinimumNArgs(1),
		RunE: a.withService(func(cmd *cobra.Command, args []string, svc *session.Service) (err error) {
			if q.Most < 1 || q.Most > 1000 {
				return exit.Usagef("-n %d: want 1 to 1000", q.Most)
			}
			if q.Words = strings.Join(args, " "); here {
				q.Here = "."
			}
			// The first search of a home reads every task, which may take a while.
			line := view.NewProgress(a.stderr)
			found, err := search.Find(cmd.Context(), svc.Home, q, line.Tasks)
			line.Clear()
			if errors.Is(err, search.ErrNoWords) {
				return exit.Usagef("%s: %w; name a word, a path or a part of an error",
					strconv.Quote(view.Line(q.Words, 60)), err)
			} else if err != nil {
				return err
			}
			for _, n := range found.Notes {
				a.notef("%s", view.Line(n, 500))
			}
			return a.show(found, func() { a.printf("%s", show.Search(found, a.width(), "")) })
		}),
	}
	cmd.Flags().BoolVar(&here, "here", false, "tasks of this directory's repository alone")
	cmd.Flags().BoolVar(&q.Errors, "errors", false, "errors alone")
	cmd.Flags().TimeVar(&q.Since, "since", time.Time{}, []string{time.DateOnly},
		"tasks that went on since a `DAY` such as 2026-11-02")
	cmd.Flags().IntVarP(&q.Most, "number", "n", search.DefaultMost, "how many tasks to show")
	return a.jsonFlag(cmd, "a JSON object")
}
