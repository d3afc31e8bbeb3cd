//go:build unix

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"

	"github.com/spf13/cobra"
)

func (a *app) kbEditCommand(dir *string) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a card in $EDITOR, or to a file's text",
		Long: `Change a card: in $VISUAL or $EDITOR, or, with --file, to the text of a file (- is standard input). A text that is not
a card is refused with its line and kept; so is one over a card that somebody changed meanwhile.`,
		Args: cobra.ExactArgs(1),
		RunE: a.withKB(dir, false, func(cmd *cobra.Command, args []string, store *knowledgebase.Store) error {
			old, fingerprint, err := store.Text(args[0])
			if err != nil {
				return kbError(err)
			}
			d := draftFile{path: file}
			var text []byte
			if file != "" {
				text, err = a.readCardFile(file)
			} else {
				d, text, err = a.edit(cmd.Context(), args[0]+".md", old)
			}
			if err != nil {
				return usageError("kb edit: %w", err)
			}
			if bytes.Equal(text, old) {
				d.drop()
				a.printf("unchanged %s\n", args[0])
				return nil
			}
			st, err := store.Edit(cmd.Context(), args[0], fingerprint, text)
			if err != nil {
				return d.kept(err)
			}
			d.drop()
			a.warnHistory(store)
			return a.show(st, func() { a.printf("edited %s\n", st.ID) })
		}),
	}
	a.jsonFlag(cmd, "one JSON object")
	cmd.Flags().StringVar(&file, "file", "", "take the text from this file; - is standard input")
	return cmd
}

// cardTemplate is what 'kb new' opens.
const cardTemplate = `---
type: knowledge_card
topic: TOPIC
source_task: by hand
---
- **Issue**: what goes wrong: the error verbatim and the command
- **Solution**: what made it right
- **Constraint**: where it holds, versions, what was tried and did not help
`

func (a *app) kbNewCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "new [TOPIC]",
		Short: "Write a card in $EDITOR, from a template",
		Long:  "Open a template in $VISUAL or $EDITOR and add what it becomes as a draft. A template left as it is adds nothing.",
		Args:  cobra.ArbitraryArgs,
		RunE: a.withKB(dir, true, func(cmd *cobra.Command, args []string, store *knowledgebase.Store) error {
			topic := cmp.Or(card.OneLine(strings.Join(args, " ")), "the trouble and its place, in words somebody would search by")
			template := strings.Replace(cardTemplate, "TOPIC", strconv.Quote(topic), 1)
			d, text, err := a.edit(cmd.Context(), "new.md", []byte(template))
			if err != nil {
				return usageError("kb new: %w", err)
			}
			if string(text) == template {
				d.drop()
				a.println("the template was left as it is: nothing added")
				return nil
			}
			added, failed := a.kbAddFiles(cmd.Context(), store, []string{d.path})
			if len(failed) > 0 {
				return fmt.Errorf("%w; your text is kept: 'anamnesis kb add %s' once it is right", failed[0], d.path)
			}
			d.drop()
			a.warnHistory(store)
			return a.printAdded(added[0])
		}),
	}
}

// draftFile is what a user wrote in an editor. It is kept until it is
// stored, so that no error costs them their text.
type draftFile struct {
	path string
	dir  string // made for it; "" where the file is the user's own
}

func (d draftFile) drop() {
	if d.dir != "" {
		_ = os.RemoveAll(d.dir) // in the system's folder for such files
	}
}

// kept names the text beside what was wrong with it.
func (d draftFile) kept(err error) error {
	var fault *card.Error
	if errors.As(err, &fault) {
		err = usageError("%s", kbFault(d.path, fault))
	} else {
		err = kbError(err)
	}
	if d.dir == "" {
		return err
	}
	return fmt.Errorf("%w; your text is kept in %s", err, d.path)
}

// edit lets the user change a text in their editor.
func (a *app) edit(ctx context.Context, name string, text []byte) (draftFile, []byte, error) {
	editor := cmp.Or(a.getenv("VISUAL"), a.getenv("EDITOR"))
	if editor == "" {
		if !a.interactive() {
			return draftFile{}, nil, errors.New("no terminal and no editor: set EDITOR, or name the text with a flag; see --help")
		}
		editor = "vi"
	}
	dir, err := os.MkdirTemp("", "anamnesis-edit-*")
	if err != nil {
		return draftFile{}, nil, err
	}
	d := draftFile{path: filepath.Join(dir, name), dir: dir}
	if err := os.WriteFile(d.path, text, 0o600); err != nil {
		d.drop()
		return d, nil, err
	}
	// The variable may hold arguments, as git and others allow.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", d.path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.stdin, a.stdout, a.stderr
	if err := cmd.Run(); err != nil {
		return d, nil, fmt.Errorf("the editor %q: %w; nothing was changed, the text is in %s", editor, err, d.path)
	}
	if info, err := os.Stat(d.path); err == nil && info.Size() > knowledgebase.MaxChangeBytes {
		return d, nil, fmt.Errorf("the text has %d bytes, at most %d are allowed; it is kept in %s", info.Size(), knowledgebase.MaxChangeBytes, d.path)
	}
	changed, err := os.ReadFile(d.path)
	return d, changed, err
}
