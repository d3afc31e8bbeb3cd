// Package notes makes drafts of cards from what people have written down
// already: notes for agents such as CLAUDE.md and AGENTS.md, folders of
// markdown, cards of others.
package notes

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/handout"
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

// Read returns the cards of a file, or of all markdown files beneath a folder,
// in the order of their paths; hidden folders, node_modules and links out of the folder are passed by.
// All of them are drafts, not shown to other tasks before a user has reviewed them.
// Their ids derive from file and place, so that reading again returns the same cards.
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
		for _, w := range why {
			skipped = append(skipped, Skipped{path, w})
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("import %s: %w", root, err)
	}
	return cards, skipped, nil
}

// leadsOut reports whether path is a link to a target outside folder: a folder made by
// others must not turn a user's own files into cards.
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

// readFile returns a file's cards, and why there are none of it or of its parts.
func readFile(path string, now time.Time) (cards []*card.Card, why []string) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, []string{err.Error()}
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return nil, []string{fmt.Sprintf("not a regular file of at most %d bytes", MaxFileBytes)}
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, []string{err.Error()}
	}
	if !utf8.Valid(src) {
		return nil, []string{"not UTF-8"}
	}
	if bytes.Contains(src[:min(len(src), 200)], []byte("type: "+card.Type)) {
		c, err := card.Parse(src)
		if err != nil {
			return nil, []string{err.Error()}
		}
		return []*card.Card{foreign(c, path)}, nil
	}
	if bytes.HasPrefix(src, []byte(card.ListMark)) {
		return nil, nil
	}
	cards, why = Split(path, src, now)
	if len(cards) == 0 && why == nil {
		why = []string{"no text under any heading"}
	}
	return cards, why
}

// foreign returns an imported card as a local draft.
func foreign(c *card.Card, path string) *card.Card {
	c = c.Clone()
	if c.ID == "" {
		c.ID = card.NewID("import", path, c.Topic)
	}
	c.State, c.VerifiedAt, c.Provenance.Tainted = card.Draft, nil, true
	return c
}

// Split makes a card of each item of a top-level list and of each paragraph of a markdown
// text, named by the headings above it and what it says first. Text before the first heading
// goes under the file's name. Tables and HTML comments are skipped and named.
func Split(path string, src []byte, now time.Time) (cards []*card.Card, skipped []string) {
	s := splitter{path: path, now: now, headings: []string{strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))}}
	for l := range strings.Lines(strings.ReplaceAll(handout.Strip(string(src)), "\r\n", "\n")) {
		s.line(strings.TrimRight(l, "\n"))
	}
	s.endSection()
	return s.cards, s.skipped
}

// splitter walks through the lines.
type splitter struct {
	path     string
	now      time.Time
	headings []string // [0] is the file's name; [n] the heading of level n, "" where it is missing
	fence    string   // closes the code block that is open
	table    bool     // the last line was a table's
	comment  bool     // an HTML comment is open
	skipped  []string
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
	if s.skips(trimmed) {
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
		if len(s.bullet) > 0 && marker(s.bullet[0]) == 0 {
			s.endBullet()
		} else if len(s.bullet) > 0 {
			s.bullet = append(s.bullet, "")
		}
	case marker(l) > 0 || len(s.bullet) > 0 && marker(s.bullet[0]) > 0 && s.bullet[len(s.bullet)-1] == "" && !strings.HasPrefix(l, " "):
		s.endBullet()
		s.bullet = []string{l}
	default:
		s.bullet = append(s.bullet, l)
	}
}

// skips reports whether a line is part of a table or of an HTML comment.
func (s *splitter) skips(trimmed string) bool {
	row, opens := strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "<!--")
	switch {
	case s.comment || opens:
		if !s.comment {
			s.skipped = append(s.skipped, "an HTML comment: "+clip(trimmed, maxNameRunes))
		}
		s.comment = !strings.Contains(trimmed, "-->")
		return true
	case row && !s.table:
		s.skipped = append(s.skipped, "a table: "+clip(trimmed, maxNameRunes))
	}
	s.table = row
	return row
}

var item = regexp.MustCompile(`^(?:[-*+]|\d{1,3}[.)]) `)

// marker returns the length of the mark by which a line begins an item of a top-level list,
// 0 if it begins none.
func marker(l string) int { return len(item.FindString(l)) }

func (s *splitter) endBullet() {
	if len(s.bullet) > 0 {
		width := marker(s.bullet[0])
		s.bullet[0] = s.bullet[0][width:]
		for i, l := range s.bullet[1:] {
			s.bullet[i+1] = l[min(width, len(l)-len(strings.TrimLeft(l, " "))):]
		}
	}
	if text := strings.TrimSpace(strings.Join(s.bullet, "\n")); text != "" && text != "---" {
		s.bullets = append(s.bullets, text)
	}
	s.bullet = nil
}

// maxNameRunes bounds the part of a lesson's first line in its card's topic.
const maxNameRunes = 80

// endSection makes a card of each lesson gathered: what it says first, behind
// the headings above it, is its topic, and what it forbids is a constraint.
func (s *splitter) endSection() {
	s.endBullet()
	s.fence = ""
	var names []string
	for _, h := range s.headings[min(1, len(s.headings)-1):] {
		if h = card.OneLine(h); h != "" {
			names = append(names, h)
		}
	}
	if s.seen == nil {
		s.seen = make(map[string]int)
	}
	for _, text := range s.bullets {
		issue, text := trouble(text)
		topic := clip(strings.Join(append(names[:len(names):len(names)], name(cmp.Or(issue, text))), ": "), card.MaxTopicRunes)
		s.seen[topic]++
		c := &card.Card{
			Topic: topic, SourceTask: "import", ID: card.NewID("import", s.path, topic, fmt.Sprint(s.seen[topic])), State: card.Draft, Created: s.now.UTC().Truncate(time.Second),
			Provenance: card.Provenance{Model: "import of " + card.OneLine(filepath.Base(s.path)), Tainted: true}, Tags: []string{"imported"},
		}
		if issue != "" {
			c.Issue = []string{issue}
		}
		if forbids(text) {
			c.Constraint = []string{text}
		} else {
			c.Solution = []string{text}
		}
		s.cards = append(s.cards, c)
	}
	s.bullets = nil
}

// errorText matches text that quotes an error.
var errorText = regexp.MustCompile("(?i)(?:error|fatal|panic|exception): |`[^`]*(?: not found|no such |denied|refused|cannot | does not exist|undefined: | failed)[^`]*`")

// trouble splits a lesson of the form "If (or When) X, Y" or "`X`: Y" whose X quotes an error
// into X and Y. Of any other it returns the whole as rest.
func trouble(text string) (issue, rest string) {
	end, from := ":", 0
	if word, _, _ := strings.Cut(text, " "); word == "If" || word == "When" {
		end, from = ",", len(word)+1
	} else if !strings.HasPrefix(text, "`") {
		return "", text
	}
	var quote rune
	for i, r := range text {
		switch {
		case (r == '`' || r == '"') && quote == 0:
			quote = r
		case r == quote:
			quote = 0
		case quote == 0 && i > from && (strings.HasPrefix(text[i:], end+" ") || strings.HasPrefix(text[i:], end+"\n")):
			issue, rest = strings.TrimSpace(text[from:i]), strings.TrimSpace(text[i+1:])
			if rest == "" || !errorText.MatchString(issue) {
				return "", text
			}
			return issue, rest
		}
	}
	return "", text
}

// name is what a lesson is called: its first sentence or line, without marks.
func name(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	for _, end := range []string{". ", "; ", "。"} {
		first, _, _ = strings.Cut(first, end)
	}
	first = strings.Trim(strings.NewReplacer("`", "", "**", "").Replace(card.OneLine(first)), " .:。")
	return clip(first, maxNameRunes)
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// forbids reports whether a lesson begins by saying what is not to be done.
func forbids(text string) bool {
	text = strings.ToLower(strings.TrimLeft(text, "*_ "))
	for _, no := range []string{"never ", "do not ", "don't ", "don’t ", "avoid ", "不要", "禁止", "切勿", "避免"} {
		if strings.HasPrefix(text, no) {
			return true
		}
	}
	return false
}
