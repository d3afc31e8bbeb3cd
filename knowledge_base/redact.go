package knowledgebase

import (
	"fmt"
	"maps"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/secrets"
)

func (s *Store) redact() secrets.Redactor { return s.opts.Redact }

// Redacted returns a card as it would be stored: without its secrets, with the markers that
// replaced them.
func (s *Store) Redacted(c *card.Card) (clean *card.Card, markers []string, err error) {
	return s.redact().Card(c)
}

// redactChange replaces the secrets in a change that is about to be made, and reports the cards that
// had any to Notice. The change's cards are copies already.
func (s *Store) redactChange(ch *Change, cards []*card.Card) error {
	var none []string
	// All texts pass through the redactor once before: a secret that one of them shows plainly is then
	// replaced in the others as well, in any form.
	for _, c := range cards {
		s.redact().Text(string(c.Markdown()), &none)
	}
	ch.Message = s.redact().Text(ch.Message, &none)
	for i, c := range cards {
		clean, markers, err := s.redact().Card(c)
		if err != nil {
			return fmt.Errorf("put card %s: %w", c.ID, err)
		}
		if len(markers) == 0 {
			continue
		}
		if err := clean.Validate(); err != nil {
			return fmt.Errorf("put card %s: %w", c.ID, err)
		}
		// The text after its fields is another one now: it still replaces the
		// file it was read from.
		st := s.cards[c.ID]
		fromFile := st != nil && intent.Sum(c.Source()) == fmt.Sprintf("%x", st.Sum)
		if fromFile && clean.ParsedID() != "" && ch.Over[c.ID] == "" {
			over := map[string]string{c.ID: st.Fingerprint()}
			maps.Copy(over, ch.Over)
			ch.Over = over
		}
		cards[i] = clean
		s.Notice("card %s: %s", c.ID, secrets.Replaced(markers))
	}
	return nil
}

// Notice calls [Options.Notice] with a line.
func (s *Store) Notice(format string, args ...any) {
	if s.opts.Notice != nil {
		s.opts.Notice(card.OneLine(fmt.Sprintf(format, args...)))
	}
}
