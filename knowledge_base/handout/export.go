package handout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/secrets"
)

// ErrNotEmpty is returned by [Export] for a folder that holds something.
var ErrNotEmpty = errors.New("the folder is not empty")

// Export writes the cards in the given states into a new folder that others
// can read or import: the cards in their months, and a README.md that
// lists them. It returns how many. The folder appears whole or not at all.
func Export(ctx context.Context, s *knowledgebase.Store, dir string, states []card.State) (n int, err error) {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return 0, fmt.Errorf("export to %s: %w", dir, ErrNotEmpty)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("export: %w", err)
	}
	dir = filepath.Clean(dir)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".export-*")
	if err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	defer os.RemoveAll(temp)
	list := slices.DeleteFunc(s.List(), func(e knowledgebase.Entry) bool { return !slices.Contains(states, e.State) })
	for i := range list {
		e := &list[i]
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("export: %w", err)
		}
		if err := exportCard(s, temp, e); err != nil {
			return 0, fmt.Errorf("export card %s: %w", e.ID, err)
		}
	}
	if err := os.WriteFile(filepath.Join(temp, "README.md"), exportIndex(list), 0o644); err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	// Meant for others, unlike the store itself.
	if err := os.Chmod(temp, 0o755); err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("export: %w", err)
	}
	if err := os.Rename(temp, dir); err != nil {
		return 0, fmt.Errorf("export: %w", err)
	}
	return len(list), nil
}

// exportCard writes a card without its secrets; e becomes what was written.
func exportCard(s *knowledgebase.Store, to string, e *knowledgebase.Entry) error {
	c, err := s.Get(e.ID)
	if err != nil {
		return err
	}
	c, markers, err := s.Redacted(c)
	if err != nil {
		return err
	}
	month := filepath.Join(to, filepath.Base(filepath.Dir(e.Path)))
	if len(markers) > 0 {
		s.Notice("card %s: %s in the export; the folder still has it: rotate it, and run 'anamnesis kb redact'", e.ID, secrets.Replaced(markers))
		e.Topic, e.Path = c.Topic, filepath.Join(month, folder.FileName(c.Topic, c.ID))
	}
	if err := os.MkdirAll(month, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(month, filepath.Base(e.Path)), c.Markdown(), 0o644)
}

// exportIndex lists the cards as links.
func exportIndex(list []knowledgebase.Entry) []byte {
	escape := strings.NewReplacer("[", `\[`, "]", `\]`, "<", "&lt;", "`", "\\`", "*", `\*`, "_", `\_`)
	var b strings.Builder
	fmt.Fprintf(&b, card.ListMark+"\n# %d knowledge cards\n\nOne lesson a file. 'anamnesis kb import' takes this folder in, as drafts to be reviewed.\n\n", len(list))
	for _, e := range list {
		link := filepath.Base(filepath.Dir(e.Path)) + "/" + filepath.Base(e.Path)
		fmt.Fprintf(&b, "- [%s](<%s>) – %s, %s\n", escape.Replace(card.OneLine(e.Topic)), link, e.State, e.Created.Format(time.DateOnly))
	}
	return []byte(b.String())
}
