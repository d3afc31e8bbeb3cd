//go:build unix

// Package cardfile adds cards from files and from a user's editor to a folder of cards. A
// user's text stays in its file until it is stored, so that no error loses it.
package cardfile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	view "anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/orchestrator/session"
)

// Desk is where a user's files are read and their editor runs.
type Desk struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Terminal       bool // a user is there to edit
}

// PathText returns a path on one line, safe for a terminal.
func PathText(path string) string { return view.Clean(card.OneLine(path)) }

// Fault formats a card's fault as path:line: text.
func Fault(path string, err error) string {
	path = PathText(path)
	var fault *card.Error
	if !errors.As(err, &fault) {
		return fmt.Sprintf("%s: %v", path, err)
	}
	if fault.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", path, fault.Line, fault.What)
	}
	return fmt.Sprintf("%s: %s", path, fault.What)
}

// Read reads a file, or standard input for "-": at most one byte more than allowed, so that a
// huge file is rejected without being read whole.
func (d Desk) Read(file string, most int) ([]byte, error) {
	r := d.Stdin
	if file != "-" {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s does not exist; name a markdown file, or - for standard input", PathText(file))
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if fi, err := f.Stat(); err == nil && fi.IsDir() {
			return nil, fmt.Errorf("%s is not a regular file; name a markdown file", file)
		}
		r = f
	}
	return io.ReadAll(io.LimitReader(r, int64(most)+1))
}

// Draft is a text that a user wrote.
type Draft struct {
	Path string
	dir  string // made for it; "" where the file is the user's own
}

func (d Draft) Drop() {
	if d.dir != "" {
		_ = os.RemoveAll(d.dir) // in the system's folder for such files
	}
}

// WithPath adds to an error where the text is and what to do with it; then has a %s for its path.
func (d Draft) WithPath(err error, then string) error {
	if fault, ok := errors.AsType[*card.Error](err); ok {
		err = session.Usagef("%s", Fault(d.Path, fault))
	}
	if d.dir == "" {
		return err
	}
	return fmt.Errorf("%w; your text is kept"+then, err, d.Path)
}

// Edit lets the user change a text in their editor. instead is what to do without one.
func (d Desk) Edit(ctx context.Context, name string, text []byte, instead string) (Draft, []byte, error) {
	editor := cmp.Or(d.Getenv("VISUAL"), d.Getenv("EDITOR"))
	if editor == "" {
		if !d.Terminal {
			return Draft{}, nil, errors.New("no terminal and no editor: set EDITOR, or " + instead)
		}
		editor = "vi"
	}
	dir, err := os.MkdirTemp("", "anamnesis-edit-*")
	if err != nil {
		return Draft{}, nil, err
	}
	draft := Draft{Path: filepath.Join(dir, name), dir: dir}
	if err := os.WriteFile(draft.Path, text, 0o600); err != nil {
		draft.Drop()
		return draft, nil, err
	}
	// The variable may hold arguments, as git and others allow.
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "sh", draft.Path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.Stdin, d.Stdout, d.Stderr
	if err := cmd.Run(); err != nil {
		return draft, nil, fmt.Errorf("the editor %q: %w; nothing was changed, the text is in %s", editor, err,
			draft.Path)
	}
	if info, err := os.Stat(draft.Path); err == nil && info.Size() > knowledgebase.MaxChangeBytes {
		return draft, nil, fmt.Errorf("the text has %d bytes, at most %d are allowed; it is kept in %s", info.Size(),
			knowledgebase.MaxChangeBytes, draft.Path)
	}
	changed, err := os.ReadFile(draft.Path)
	return draft, changed, err
}

// Added is a file's stored card.
type Added struct {
	ID      string `json:"id"`
	Path    string `json:"path"`
	Created bool   `json:"created"`
	// Rediscovered: the card with this id has the same content.
	Rediscovered bool   `json:"rediscovered,omitempty"`
	File         string `json:"file"`
}

// Add adds the cards of files: all in one commit if none has a problem, and otherwise each by
// itself.
func (d Desk) Add(ctx context.Context, store *knowledgebase.Store, files []string) (added []Added, failed []error) {
	var cards []*card.Card
	var from []string
	seen, together, size := make(map[string]bool), true, 0
	for _, file := range files {
		c, err := d.parse(file)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		// Equal cards are stored one after the other, so that the second is reported as rediscovered.
		together = together && !seen[c.ID] && !seen[c.Hash()]
		seen[c.ID], seen[c.Hash()] = true, true
		size += len(c.Markdown())
		cards, from = append(cards, c), append(from, file)
	}
	apply := func(first, last int) error {
		stored, err := store.Apply(ctx, knowledgebase.Change{By: knowledgebase.Person, Cards: cards[first:last]})
		if err != nil {
			return err
		}
		for i, st := range stored {
			added = append(added, Added{ID: st.ID, Path: st.Path, Created: st.Created,
				Rediscovered: st.Rediscovered, File: from[first+i]})
		}
		return nil
	}
	if together && size <= knowledgebase.MaxChangeBytes && len(cards) > 0 && apply(0, len(cards)) == nil {
		return added, failed
	}
	for i := range cards {
		if err := apply(i, i+1); err != nil {
			failed = append(failed, addError(from[i], err))
		}
	}
	return added, failed
}

func addError(file string, err error) error {
	if fault, ok := errors.AsType[*card.Error](err); ok {
		return session.Usagef("kb add: %s", Fault(file, fault))
	}
	return err
}

// parse reads a card; one without an id gets one derived from its text.
func (d Desk) parse(file string) (*card.Card, error) {
	src, err := d.Read(file, card.MaxBytes)
	if err != nil {
		return nil, session.Usagef("kb add: %w", err)
	}
	c, err := card.Parse(src)
	if err != nil { // a user's own card comes from no task
		if own, fault := card.Parse(bytes.Replace(src, []byte("\n---"), []byte("\n"+byHand+"\n---"), 1)); fault == nil {
			c, err = own, nil
		}
	}
	if err != nil {
		return nil, addError(file, err)
	}
	c.ID = cmp.Or(c.ID, card.NewID("file", c.Hash()))
	return c, nil
}

// byHand is the source of a card that a user wrote.
const byHand = "source_task: by hand"

// Template is the initial text of 'kb new'.
const Template = `---
type: knowledge_card
topic: TOPIC
` + byHand + `
---
- **Issue**: what goes wrong: the error verbatim and the command
- **Solution**: what made it right
- **Constraint**: where it holds, versions, what was tried and did not help
`
