package knowledgebase

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/intent"
)

// redactText returns a text without its secrets.
func (s *Store) redactText(text string, markers *[]string) string {
	if s.opts.Redact == nil {
		return text
	}
	out, found := s.opts.Redact(text)
	for _, m := range found {
		if !slices.Contains(*markers, m) {
			*markers = append(*markers, m)
		}
	}
	return out
}

// redactCard returns a card with markers in the place of its secrets; the card
// itself where it has none. One whose id holds a secret, or whose text cannot be
// read without it, is a *[card.Error].
func (s *Store) redactCard(c *card.Card) (_ *card.Card, markers []string, err error) {
	if s.redactText(string(c.Markdown()), &markers); len(markers) == 0 {
		return c, nil, nil
	}
	markers = nil
	if s.redactText(c.ID, &markers); len(markers) > 0 {
		return nil, nil, card.Errorf(0, "its id holds a secret (%s); give it another", markers[0])
	}
	c = c.Clone()
	// The fields first: they are written so that a marker stays text in YAML.
	for _, field := range []*string{&c.Topic, &c.SourceTask, &c.Scope.Repo, &c.Scope.Language, &c.Scope.Tool, &c.Scope.Version,
		&c.Provenance.Task, &c.Provenance.Model, &c.Provenance.EvidenceHash} {
		*field = s.redactText(*field, &markers)
	}
	for _, list := range [][]string{c.Tags, c.Issue, c.Solution, c.Constraint, c.Supersedes, c.Contradicts, c.Generalizes, c.Provenance.Shown} {
		for i := range list {
			list[i] = s.redactText(list[i], &markers)
		}
	}
	if n := len([]rune(c.Topic)); n > card.MaxTopicRunes {
		c.Topic = string([]rune(c.Topic)[:card.MaxTopicRunes])
	}
	text := string(c.Markdown())
	rest := s.redactText(text, &markers)
	if rest == text {
		return c, markers, nil
	}
	out, err := card.Parse([]byte(rest))
	if err != nil || out.ID != c.ID {
		return nil, nil, card.Errorf(0, "it holds a secret (%s) that cannot be replaced where it stands; take it out", markers[0])
	}
	return out, markers, nil
}

// Redacted returns a card as it would be stored: without its secrets.
func (s *Store) Redacted(c *card.Card) (*card.Card, error) {
	c, _, err := s.redactCard(c)
	return c, err
}

// redactChange takes the secrets out of a change that is about to be made, and
// tells which cards had any. Its cards are copies already.
func (s *Store) redactChange(ch *Change, cards []*card.Card) error {
	var none []string
	// A secret that one place shows plainly is known in every other form and place
	// only once it was seen.
	for _, c := range cards {
		s.redactText(string(c.Markdown()), &none)
	}
	ch.Message = s.redactText(ch.Message, &none)
	for i, c := range cards {
		clean, markers, err := s.redactCard(c)
		if err != nil {
			return fmt.Errorf("put card %s: %w", c.ID, err)
		}
		if len(markers) == 0 {
			continue
		}
		if err := clean.Validate(); err != nil {
			return fmt.Errorf("put card %s: %w", c.ID, err)
		}
		// What stands behind its fields is another text now: it still replaces the
		// file it was read from.
		if st := s.cards[c.ID]; st != nil && clean.ParsedID() != "" && intent.Sum(c.Source()) == fmt.Sprintf("%x", st.Sum) && ch.Over[c.ID] == "" {
			over := map[string]string{c.ID: st.Fingerprint()}
			maps.Copy(over, ch.Over)
			ch.Over = over
		}
		cards[i] = clean
		s.notice("card %s: %s", c.ID, replaced(markers))
	}
	return nil
}

// replaced words what was found.
func replaced(markers []string) string {
	if len(markers) == 1 {
		return "a secret was replaced by " + markers[0]
	}
	return fmt.Sprintf("%d secrets were replaced by %s", len(markers), strings.Join(markers, " "))
}

func (s *Store) notice(format string, args ...any) {
	if s.opts.Notice != nil {
		s.opts.Notice(card.OneLine(fmt.Sprintf(format, args...)))
	}
}
