//go:build unix

package main

import (
	"github.com/spf13/cobra"

	knowledgebase "anamnesis/knowledge_base"
)

func (a *app) kbRedactCommand(dir *string) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "redact",
		Short: "Remove secrets from the cards' files",
		Long: `List the secrets in the folder's files, names and git history, by place and kind and never in
the clear. After your consent the files get markers in their place, in one commit. Earlier
commits keep them: the command that rewrites the history is printed. Without a terminal nothing
is changed unless --yes is given.`,
		RunE: a.withKB(dir, existing, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			done := a.line().Working("reading the cards and their history")
			found, err := store.FindSecrets(cmd.Context())
			done()
			if err != nil {
				return err
			}
			if !a.json {
				a.out().Secrets(found)
			}
			if len(found.Files) > 0 && (yes || !a.json && a.interactive()) {
				if err := a.tty().Confirm(cmd.Context(), "kb redact", "Remove them?", yes); err != nil {
					return err
				}
				done = a.line().Working("removing secrets")
				found, err = store.RemoveSecrets(cmd.Context())
				if done(); err != nil {
					return err
				}
			}
			return a.show(found, func() { a.out().Removed(store, found) })
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().BoolVar(&yes, "yes", false, "remove them without asking")
	return cmd
}
