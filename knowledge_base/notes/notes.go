// Package notes makes drafts of cards from what people have written down
// already: notes for agents such as CLAUDE.md and AGENTS.md, folders of
// markdown, cards of others.
package notes

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"anamnesis/knowledge_base/card"
)

// Limits of one import.
const (
	MaxFiles     = 10_000
	MaxFileBytes = card.MaxBytes
)

// Skipped is a file or a part of one that no card was made of.
type Skipped struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// Read gives the cards of a file, or of all markdown files beneath a folder,
// in the order of their paths; hidden folders, node_modules and links out of the folder are passed by.
// All of them are drafts that no other task is shown before a person has
// reviewed them. Their ids come from where they stand, so that reading again
// gives the same cards.
func Read(ctx context.Context, root string, now time.Time) (cards []*card.Card, skipped []Skipped, err error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, nil, fmt.Errorf("import %s: %w", root, err)
	}
	files := 0
	err = filepath.WalkDir(abs, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		name := d.Name()
		if d.IsDir() {
			if path != abs && (strings.HasPrefix(name, ".") || name == "node_modules") {
				return fs.SkipDir
			}
			return nil
		}
		if path != abs && !strings.EqualFold(filepath.Ext(name), ".md") {
			return nil
		}
		if files++; files > MaxFiles {
			return fmt.Errorf("more than %d files; import in parts", MaxFiles)
		}
		if path != abs && leadsOut(abs, path, d) {
			skipped = append(skipped, Skipped{path, "a link that leads out of the folder"})
			return nil
		}
		more, why := readFile(path, now)
		cards = append(cards, more...)
		if why != "" {
			skipped = append(skipped, Skipped{path, why})
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("import %s: %w", root, err)
	}
	return cards, skipped, nil
}

// leadsOut reports a link in a folder to what stands elsewhere: a folder that
// others made must not bring a person's own files among the cards.
func leadsOut(folder, path string, d fs.DirEntry) bool {
	if d.Type()&fs.ModeSymlink == 0 {
		return false
	}
	real, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return true
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	within, err := filepath.Rel(real, target)
	return err != nil || !filepath.IsLocal(within)
}

// readFile gives a file's cards, or why there are none.
func readFile(path string, now time.Time) ([]*card.Card, string) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err.Error()
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return nil, fmt.Sprintf("not a regular file of at most %d bytes", MaxFileBytes)
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, err.Error()
	}
	if !utf8.Valid(src) {
		return nil, "not UTF-8"
	}
	if bytes.Contains(src[:min(len(src), 200)], []byte("type: "+card.Type)) {
		c, err := card.Parse(src)
		if err != nil {
			return nil, err.Error()
		}
		return []*card.Card{foreign(c, path)}, ""
	}
	if bytes.HasPrefix(src, []byte(card.ListMark)) {
		return nil, ""
	}
	cards := Split(path, src, now)
	if len(cards) == 0 {
		return nil, "no text under any heading"
	}
	return cards, ""
}

// foreign makes another's card a draft of ours.
func foreign(c *card.Card, path string) *card.Card {
	c = c.Clone()
	if c.ID == "" {
		c.ID = card.NewID("import", path, c.Topic)
	}
	c.State, c.VerifiedAt, c.Provenance.Tainted = card.Draft, nil, true
	return c
}

// Split makes a card of each section of a markdown text: its heading, behind
// those above it, is the topic, each list item or paragraph a bullet. Text
// before the first heading goes under the file's name.
func Split(path string, src []byte, now time.Time) []*card.Card {
	s := splitter{path: path, now: now, headings: []string{strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}}
	for l := range strings.Lines(strings.ReplaceAll(string(src), "\r\n", "\n")) {
		s.line(strings.TrimRight(l, "\n"))
	}
	s.endSection()
	return s.cards
}

// splitter walks through the lines.
type splitter struct {
	path     string
	now      time.Time
	headings []string // [0] is the file's name; [n] the heading of level n, "" where it is missing
	fence    string   // closes the code block that is open
	bullet   []string
	bullets  []string
	cards    []*card.Card
	seen     map[string]int
}

func (s *splitter) line(l string) {
	trimmed := strings.TrimSpace(l)
	if s.fence != "" {
		s.bullet = append(s.bullet, l)
		if strings.HasPrefix(trimmed, s.fence) {
			s.fence = ""
		}
		return
	}
	for _, f := range []string{"```", "~~~"} {
		if strings.HasPrefix(trimmed, f) {
			s.fence, s.bullet = f, append(s.bullet, l)
			return
		}
	}
	level := len(l) - len(strings.TrimLeft(l, "#"))
	switch {
	case level >= 1 && level <= 6 && strings.HasPrefix(l[level:], " "):
		s.endSection()
		for len(s.headings) <= level {
			s.headings = append(s.headings, "")
		}
		s.headings = append(s.headings[:level], strings.TrimSpace(strings.Trim(l[level:], "# ")))
	case trimmed == "":
		if len(s.bullet) > 0 && !isItem(s.bullet[0]) {
			s.endBullet()
		} else if len(s.bullet) > 0 {
			s.bullet = append(s.bullet, "")
		}
	case isItem(l) || len(s.bullet) > 0 && isItem(s.bullet[0]) && s.bullet[len(s.bullet)-1] == "" && !strings.HasPrefix(l, " "):
		s.endBullet()
		s.bullet = []string{l}
	default:
		s.bullet = append(s.bullet, l)
	}
}

// isItem reports whether a line begins an item of a top-level list.
func isItem(l string) bool {
	return strings.HasPrefix(l, "- ") || strings.HasPrefix(l, "* ") || strings.HasPrefix(l, "+ ")
}

func (s *splitter) endBullet() {
	if len(s.bullet) > 0 && isItem(s.bullet[0]) {
		s.bullet[0] = s.bullet[0][2:]
		for i, l := range s.bullet[1:] {
			s.bullet[i+1] = strings.TrimPrefix(l, "  ")
		}
	}
	if text := strings.TrimSpace(strings.Join(s.bullet, "\n")); text != "" && text != "---" {
		s.bullets = append(s.bullets, text)
	}
	s.bullet = nil
}

// endSection makes cards of what was gathered; a long section becomes several.
func (s *splitter) endSection() {
	s.endBullet()
	s.fence = ""
	var names []string
	for _, h := range s.headings {
		if h = card.OneLine(h); h != "" {
			names = append(names, h)
		}
	}
	topic := strings.Join(names, ": ")
	if r := []rune(topic); len(r) > card.MaxTopicRunes {
		topic = string(r[:card.MaxTopicRunes-1]) + "…"
	}
	if s.seen == nil {
		s.seen = make(map[string]int)
	}
	for len(s.bullets) > 0 {
		n := min(len(s.bullets), card.MaxBullets)
		s.seen[topic]++
		s.cards = append(s.cards, &card.Card{
			Topic: topic, SourceTask: "import", ID: card.NewID("import", s.path, topic, fmt.Sprint(s.seen[topic])), State: card.Draft, Created: s.now.UTC().Truncate(time.Second),
			Provenance: card.Provenance{Model: "import of " + card.OneLine(filepath.Base(s.path)), Tainted: true}, Tags: []string{"imported"},
			Solution: s.bullets[:n:n],
		})
		s.bullets = s.bullets[n:]
	}
	s.bullets = nil
}
