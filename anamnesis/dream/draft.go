package dream

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"time"

	"anamnesis/anamnesis/quote"
	"anamnesis/knowledge_base/card"
)

// Source is the source_task of the cards that are proposed here.
const Source = "dream"

// TemplateWriter is the provenance.model of a proposal that no model wrote.
const TemplateWriter = "template"

// Limits of a proposal's text, in characters.
const (
	maxTopicRunes  = 120
	maxBulletRunes = 400
)

// draft returns a proposal without its text. Its id depends on the group's cards only.
func draft(cards []*card.Card, writer string, now time.Time) *card.Card {
	c := &card.Card{SourceTask: Source, State: card.Draft, Created: now.UTC(), Scope: cards[0].Scope, Tags: slices.Clone(cards[0].Tags)}
	c.Provenance = card.Provenance{Model: writer}
	key := []string{Source}
	h := sha256.New()
	for _, in := range cards {
		key = append(key, in.ID)
		c.Generalizes = append(c.Generalizes, in.ID)
		c.Provenance.Tainted = c.Provenance.Tainted || in.Provenance.Tainted
		c.Scope = common(c.Scope, in.Scope)
		c.Tags = slices.DeleteFunc(c.Tags, func(tag string) bool { return !slices.Contains(in.Tags, tag) })
		io.WriteString(h, in.ID+" "+in.Hash()+"\n")
	}
	c.ID = card.NewID(key...)
	c.Provenance.EvidenceHash = hex.EncodeToString(h.Sum(nil))
	return c
}

// common returns the fields in which two scopes agree.
func common(a, b card.Scope) card.Scope {
	same := func(x, y string) string {
		if x == y {
			return x
		}
		return ""
	}
	return card.Scope{Repo: same(a.Repo, b.Repo), Language: same(a.Language, b.Language), Tool: same(a.Tool, b.Tool), Version: same(a.Version, b.Version)}
}

// template writes a proposal without a model: it lists what each of the cards says, and a user
// words what they have in common.
func template(g Group, now time.Time) *card.Card {
	c := draft(g.Cards, TemplateWriter, now)
	oldest := slices.MinFunc(g.Cards, func(a, b *card.Card) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) })
	c.Topic = quote.ClipMarked(fmt.Sprintf("Seen in %d places: %s", len(g.Cards), quote.Squash(oldest.Topic)), maxTopicRunes)
	for _, in := range g.Cards {
		topic := quote.Squash(in.Topic)
		c.Issue = append(c.Issue, quote.ClipMarked(said(topic, in.Issue), maxBulletRunes))
		if len(in.Solution) > 0 {
			c.Solution = append(c.Solution, quote.ClipMarked(said(topic, in.Solution), maxBulletRunes))
		}
	}
	c.Constraint = []string{"Put together by a template from cards that share their words. Before you approve it, say in one sentence what holds in all of these places."}
	return c
}

// said is the first bullet of a card behind its topic, on one line.
func said(topic string, bullets []string) string {
	if len(bullets) == 0 {
		return topic
	}
	return topic + ": " + quote.Squash(bullets[0])
}
