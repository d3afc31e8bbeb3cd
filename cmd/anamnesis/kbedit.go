//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"anamnesis/cmd/internal/cardfile"
	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

func (a *app) kbEditCommand(dir *string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a card in $EDITOR, or to a file's text",
		Long: `Change a card in $VISUAL or $EDITOR or, with --file, to the text of a file (- is standard
input). A text that is not a valid card is refused with the line and kept. So is an edit of a
card that has changed since it was opened.`,
		Args: cobra.ExactArgs(1),
		RunE: a.onCard(dir, func(cmd *cobra.Command, id string, store *knowledgebase.Store) error {
			return a.editCard(cmd.Context(), store, id, file)
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringVar(&file, "file", "", "take the text from this file; - is standard input")
	return cmd
}

// editCard changes a card in the user's editor, or to the text of a file.
func (a *app) editCard(ctx context.Context, store *knowledgebase.Store, id, file string) error {
	old, fingerprint, err := store.Text(id)
	if err != nil {
		return err
	}
	d := cardfile.Draft{Path: file}
	var text []byte
	if file != "" {
		text, err = a.desk().Read(file, card.MaxBytes)
	} else {
		d, text, err = a.desk().Edit(ctx, id+".md", old, "name the text with --file")
	}
	if err != nil {
		return exit.Usagef("kb edit: %w", err)
	}
	if bytes.Equal(text, old) {
		d.Drop()
		a.printf("unchanged %s\n", id)
		return nil
	}
	st, err := store.Edit(ctx, id, fingerprint, text)
	if err != nil {
		return d.WithPath(err, " in %s")
	}
	d.Drop()
	a.warnHistory(store)
	return a.show(st, func() { a.printf("edited %s\n", st.ID) })
}

func (a *app) kbNewCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "new [TOPIC]",
		Short: "Write a card in $EDITOR, from a template",
		Long: `Open a template in $VISUAL or $EDITOR and add the result as a draft. An unchanged template adds
nothing.`,
		Args: cobra.ArbitraryArgs,
		RunE: a.withKB(dir, created, func(cmd *cobra.Command, args []string, store *knowledgebase.Store) error {
			topic := cmp.Or(card.OneLine(strings.Join(args, " ")),
				"the problem and its place, in words that a search would use")
			template := strings.Replace(cardfile.Template, "TOPIC", strconv.Quote(topic), 1)
			d, text, err := a.desk().Edit(cmd.Context(), "new.md", []byte(template), "use 'anamnesis kb add FILE'")
			if err != nil {
				return exit.Usagef("kb new: %w", err)
			}
			if string(text) == template {
				d.Drop()
				a.println("the template is unchanged: nothing added")
				return nil
			}
			added, failed := a.desk().Add(cmd.Context(), store, []string{d.Path})
			if len(failed) > 0 {
				return d.WithPath(failed[0], ": 'anamnesis kb add %s' once it is right")
			}
			d.Drop()
			a.warnHistory(store)
			return a.printAdded(added[0])
		}),
	}
}
