package handout

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// PlanSkill is PlanSection for the skill in a folder of skills. Files of the skill
// that the cards no longer fill are removed; others in its folder stay.
func PlanSkill(folder string, _ []string, cards []*card.Card) (out []Change, held int, err error) {
	root := filepath.Join(folder, SkillName)
	files, held := Skill(cards)
	paths := []string{filepath.Join(root, "SKILL.md")}
	there, err := filepath.Glob(filepath.Join(root, "references", "*.md"))
	if err != nil {
		return nil, 0, err
	}
	paths = append(paths, there...)
	for name := range files {
		if path := filepath.Join(root, filepath.FromSlash(name)); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		before, err := read(path)
		if err != nil {
			return nil, 0, err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, 0, err
		}
		now := files[filepath.ToSlash(name)]
		switch {
		case now == before:
		case before != "" && !Unchanged(before) && now == "" && name != "SKILL.md": // a user's own
		case before != "" && !Unchanged(before):
			return []Change{{path, before, now}}, 0, fmt.Errorf("%s: %w", path, ErrEdited)
		default:
			out = append(out, Change{path, before, now})
		}
	}
	return out, held, nil
}

func read(path string) (string, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// Apply makes a change, atomically and durably. A link keeps its place, a file its mode. The skill's folders
// go with its last file.
func (c Change) Apply() error {
	path := c.Path
	if c.Now == "" {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			path = real
		}
		err := os.Remove(path)
		for dir := filepath.Dir(path); strings.Contains(dir, SkillName) && os.Remove(dir) == nil; {
			dir = filepath.Dir(dir)
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return durable.Rewrite(path, []byte(c.Now), 0o644)
}
