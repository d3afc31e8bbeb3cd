//go:build unix

package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"anamnesis/cmd/internal/cardfile"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/history"

	"github.com/spf13/cobra"
)

func (a *app) kbRedactCommand(dir *string) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:   "redact",
		Short: "Remove secrets from the cards' files and from the folder's git history",
		Long: `List the secrets in the folder's files, names and git history, by place and kind and never as they are, and remove them
once you agree: markers take their place, and the folder's repository is rewritten. Authors, dates, messages and the order of
commits stay; commits that held a secret, and those after them, get other ids. Objects that no branch or tag leads to,
git's reflogs and older stashes are removed. Without a terminal nothing is changed unless --yes is given.`,
		RunE: a.withKB(dir, false, func(cmd *cobra.Command, _ []string, store *knowledgebase.Store) error {
			found, err := store.FindSecrets(cmd.Context())
			if err != nil {
				return err
			}
			if !a.json {
				a.printSecrets(found)
			}
			if found.Any() && (yes || !a.json && a.interactive()) {
				if err := a.confirm(cmd.Context(), "kb redact", "Remove them?", yes); err != nil {
					return err
				}
				if found, err = store.RemoveSecrets(cmd.Context()); err != nil {
					return err
				}
			}
			return a.show(found, func() { a.printRemoved(store, found) })
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().BoolVar(&yes, "yes", false, "remove them without asking")
	return cmd
}

// printSecrets lists the places.
func (a *app) printSecrets(found *knowledgebase.Secrets) {
	for _, p := range found.Files {
		a.printf("file     %s: %s\n", cardfile.Shown(p.Path), strings.Join(p.Kinds, ", "))
	}
	for _, p := range found.History {
		where := counted(p.Commits, "commit")
		switch {
		case p.Path == history.Unreachable:
			where = counted(p.Commits, "object")
		case p.Commits == 0:
			where = "staged"
		}
		a.printf("history  %s: %s; %s\n", cardfile.Shown(p.Path), strings.Join(p.Kinds, ", "), where)
	}
	for _, p := range found.Unread {
		a.notef("%s is too long or no text, and stays as it is", cardfile.Shown(p))
	}
}

// printRemoved says what was done, and what is left to do.
func (a *app) printRemoved(store *knowledgebase.Store, found *knowledgebase.Secrets) {
	text := "no secrets found"
	switch {
	case found.Done:
		text = fmt.Sprintf("removed from %s; %d of %s replaced; rotate each secret: it was stored in the clear", counted(len(found.Files), "file"), found.Changed, counted(found.Commits, "commit"))
	case found.Any():
		text = fmt.Sprintf("nothing was changed: 'anamnesis kb redact --yes' removes them and replaces %d of %s", found.Changed, counted(found.Commits, "commit"))
	}
	a.println(text)
	if !found.Done {
		return
	}
	if store.InProject() {
		a.notef("the project's own git history was not looked at: rotate the secret, and rewrite that history with 'git filter-repo'")
	}
	for _, remote := range found.Remotes {
		a.notef("%s may have the old history, which 'kb sync' refuses from now on: replace it with '%s', or recreate the remote",
			cmp.Or(remote, "a remote"), pushCommand(store, remote, found.Branch))
	}
}

// pushCommand is how a user replaces a remote's history.
func pushCommand(store *knowledgebase.Store, remote, branch string) string {
	dir := store.Dir()
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	return fmt.Sprintf("git -C %s push --force %s %s", shellWord(dir), shellWord(cmp.Or(remote, "ADDRESS")), shellWord(cmp.Or(branch, "main")))
}

// counted gives "1 file", "2 files".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// shellWord quotes a word for a shell where that is needed.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
