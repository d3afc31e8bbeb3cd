// Package secrets takes secrets out of cards, files and their names.
package secrets

import (
	"fmt"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
)

// Redactor returns a text with markers in the place of its secrets, and the markers. A nil
// one leaves texts as they are.
type Redactor func(text string) (redacted string, markers []string)

// Text returns a text without its secrets, and adds their markers.
func (r Redactor) Text(text string, markers *[]string) string {
	if r == nil {
		return text
	}
	out, found := r(text)
	for _, m := range found {
		if !slices.Contains(*markers, m) {
			*markers = append(*markers, m)
		}
	}
	return out
}

// Card returns a card with markers in the place of its secrets; the card
// itself where it has none. One whose id holds a secret, or whose text cannot be
// read without it, is a *[card.Error].
func (r Redactor) Card(c *card.Card) (_ *card.Card, markers []string, err error) {
	if r.Text(string(c.Markdown()), &markers); len(markers) == 0 {
		return c, nil, nil
	}
	markers = nil
	if r.Text(c.ID, &markers); len(markers) > 0 {
		return nil, nil, card.Errorf(0, "its id holds a secret (%s); give it another", markers[0])
	}
	c = c.Clone()
	// The fields first: they are written so that a marker stays text in YAML.
	scope, from := &c.Scope, &c.Provenance
	for _, field := range []*string{&c.Topic, &c.SourceTask, &scope.Repo, &scope.Language, &scope.Tool, &scope.Version,
		&from.Task, &from.Model, &from.EvidenceHash} {
		*field = r.Text(*field, &markers)
	}
	for _, list := range [][]string{c.Tags, c.Issue, c.Solution, c.Constraint,
		c.Supersedes, c.Contradicts, c.Generalizes, from.Shown} {
		for i := range list {
			list[i] = r.Text(list[i], &markers)
		}
	}
	if n := len([]rune(c.Topic)); n > card.MaxTopicRunes {
		c.Topic = string([]rune(c.Topic)[:card.MaxTopicRunes])
	}
	text := string(c.Markdown())
	rest := r.Text(text, &markers)
	if rest == text {
		return c, markers, nil
	}
	out, err := card.Parse([]byte(rest))
	if err != nil || out.ID != c.ID {
		return nil, nil, card.Errorf(0, "it holds a secret (%s) that cannot be replaced; take it out", markers[0])
	}
	return out, markers, nil
}

// Replaced says what was replaced.
func Replaced(markers []string) string {
	if len(markers) == 1 {
		return "a secret was replaced by " + markers[0]
	}
	return fmt.Sprintf("%d secrets were replaced by %s", len(markers), strings.Join(markers, " "))
}
