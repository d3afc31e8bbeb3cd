//go:build unix

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/history"
)

func (a *app) kbExportCommand(dir *string) *cobra.Command {
	var h handoutFlags
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the reviewed cards of a project for agents that run no hook",
		Long: `Write the lessons of the project you are in to a marked section of AGENTS.md or of FILE: at most 10
lines, after the facts of the repository. It contains reviewed, untainted cards only; retired ones
disappear at the next export. The change is shown first and made when you agree (--yes). --check
changes nothing and fails if the file differs from the cards. A section that was edited by hand is
not overwritten.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, args []string, store *knowledgebase.Store) error {
			return a.handOut(cmd.Context(), args, store, h)
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	fl := cmd.Flags()
	fl.Bool("agents-md", true, "write a section of AGENTS.md")
	fl.BoolVar(&h.check, "check", false, "only check whether the file is up to date")
	fl.BoolVar(&h.yes, "yes", false, "do not ask")
	return cmd
}

func (a *app) kbSyncCommand(dir *string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sync [REMOTE]",
		Short: "Merge a git remote's cards, and push your own",
		Long: `Merge the cards of a git remote and push your own, with the git program and its keys. REMOTE is
a name or an address (default: origin). If a card was changed on both sides, or has the id of
another card here, or was reviewed here and has another text there, yours stays and the other
version becomes a draft with an id of its own that 'kb review' shows. A received card is a draft
until you review it here, whatever it says about itself. A remote with a file above 1 MiB is
refused. git asks for no password: use a credential helper or ssh keys.`,
		Args: cobra.MaximumNArgs(1),
		RunE: a.withKB(dir, created, func(cmd *cobra.Command, args []string, store *knowledgebase.Store) error {
			remote := "origin"
			if len(args) == 1 {
				remote = args[0]
			}
			done := a.line().Working("fetching, merging and pushing the cards of " + remote)
			got, err := store.Sync(cmd.Context(), remote)
			done()
			switch {
			case errors.Is(err, history.ErrNoGit):
				return exit.Usagef("%w; install git", err)
			case errors.Is(err, history.ErrReplaced):
				return exit.With(exit.Refused,
					fmt.Errorf("%w: replace it there with 'git push --force', or name a new remote", err))
			case errors.Is(err, knowledgebase.ErrBothChanged), errors.Is(err, knowledgebase.ErrReserved),
				errors.Is(err, history.ErrRejected), errors.Is(err, history.ErrTooMuch):
				return exit.With(exit.Refused, err)
			// git has no exit code for a missing remote, so its words are matched.
			case err != nil && len(args) == 0 &&
				strings.Contains(err.Error(), "'origin' does not appear to be a git repository"):
				return exit.Usagef("kb sync: the cards' folder has no remote; name one: 'anamnesis kb sync ADDRESS', " +
					"or run 'git remote add origin ADDRESS' in that folder")
			case err != nil:
				return err
			}
			return a.show(got, func() { a.out().Synced(got) })
		}),
	}
	return a.jsonFlag(cmd, "one JSON object")
}
