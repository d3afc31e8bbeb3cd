//go:build unix

package cardfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"anamnesis/anamnesis/quote"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/notes"
	"anamnesis/orchestrator/session"
)

// Imported is the result of an import.
type Imported struct {
	Added     []string        `json:"added"`
	There     int             `json:"there_already"`
	Conflicts []string        `json:"conflicts"` // cards a user has decided about since
	Skipped   []notes.Skipped `json:"skipped"`
}

// Import makes drafts of the notes at some paths, each path as one change. doing is called with
// what begins.
func Import(ctx context.Context, store *knowledgebase.Store, paths []string, doing func(string)) (Imported, error) {
	got := Imported{Added: []string{}, Conflicts: []string{}, Skipped: []notes.Skipped{}}
	for _, path := range paths {
		doing("reading " + PathText(path))
		if err := got.importPath(ctx, store, path, doing); err != nil {
			return got, err
		}
	}
	return got, nil
}

func (got *Imported) importPath(ctx context.Context, store *knowledgebase.Store, path string,
	doing func(string)) error {
	cards, skipped, err := notes.Read(ctx, path, time.Now())
	if errors.Is(err, fs.ErrNotExist) {
		return session.Usagef("kb import: %s does not exist; name a markdown file or a folder of them", PathText(path))
	}
	if err != nil {
		return err
	}
	got.Skipped = append(got.Skipped, skipped...)
	var fit []*card.Card
	for _, c := range cards {
		clean, faulty := c, c.Validate()
		if faulty == nil {
			clean, _, faulty = store.Redacted(c)
		}
		switch old, err := store.Get(c.ID); {
		case faulty != nil:
			got.Skipped = append(got.Skipped, notes.Skipped{Path: path, Why: fmt.Sprintf("card %s: %v", c.ID, faulty)})
		case err == nil && (old.Hash() == clean.Hash()):
			got.There++
		case err == nil && old.State != card.Draft:
			got.Conflicts = append(got.Conflicts, c.ID)
		default:
			fit = append(fit, c)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	doing(fmt.Sprintf("writing %s from %s", quote.Number(len(fit), "card"), PathText(path)))
	stored, err := store.Apply(ctx, knowledgebase.Change{By: knowledgebase.Person,
		Message: fmt.Sprintf("Import %d cards from %s", len(fit), card.OneLine(path)), Cards: fit})
	if err != nil {
		return err
	}
	for _, st := range stored {
		if st.Rediscovered {
			got.There++
		} else {
			got.Added = append(got.Added, st.ID)
		}
	}
	return nil
}
