package dream

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"slices"
	"time"

	"anamnesis/knowledge_base/card"
)

// Source is the source_task of the cards that are proposed here.
const Source = "dream"

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
