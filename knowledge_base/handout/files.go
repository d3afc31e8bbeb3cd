package handout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"anamnesis/knowledge_base/card"
	"anamnesis/opstream/durable"
)

// Change is a file that differs from what the cards say.
type Change struct {
	Path        string
	Before, Now string // an empty Now removes the file
}

// PlanSection returns how the file of instructions differs from the cards, nil if it
// does not, and how many of the cards it then holds. With ErrEdited it returns what would
// be lost.
func PlanSection(path string, facts []string, cards []*card.Card) ([]Change, int, error) {
	before, err := read(path)
	if err != nil {
		return nil, 0, err
	}
	section, held := Section(facts, cards)
	now, err := Splice([]byte(before), section)
	if err != nil {
		now = marked.ReplaceAllLiteral([]byte(before), []byte(section))
		return []Change{{path, before, string(now)}}, 0, fmt.Errorf("%s: its section was %w", path, err)
	}
	if string(now) == before {
		return nil, held, nil
	}
	return []Change{{path, before, string(now)}}, held, nil
}

func read(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// Apply makes a change, atomically and durably. A link keeps its place, a file its mode.
func (c Change) Apply() error {
	if c.Now == "" {
		real, err := filepath.EvalSymlinks(c.Path)
		if err != nil {
			return err
		}
		return os.Remove(real)
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return err
	}
	return durable.Rewrite(c.Path, []byte(c.Now), 0o644)
}
