package card

import (
	"slices"
	"time"
)

// Head is the part of a card that listing, ranking and access checks need.
type Head struct {
	ID, Topic, SourceTask string
	State                 State
	Created               time.Time
	VerifiedAt, Expires   *time.Time
	Task                  string // of [Provenance]
	Tainted               bool   // likewise
	links                 *Links // nil: none
}

// Links are the cards, by id, that a card says something about.
type Links struct{ Supersedes, Contradicts, Generalizes []string }

// Links returns the card's, not to be changed. Few cards have any.
func (h *Head) Links() Links {
	if h.links == nil {
		return Links{}
	}
	return *h.links
}

// Head returns the card's.
func (c *Card) Head() Head {
	h := Head{ID: c.ID, Topic: c.Topic, SourceTask: c.SourceTask, State: c.State, Created: c.Created, VerifiedAt: cloneTime(c.VerifiedAt),
		Expires: cloneTime(c.Expires), Task: c.Provenance.Task, Tainted: c.Provenance.Tainted}
	if len(c.Supersedes)+len(c.Contradicts)+len(c.Generalizes) > 0 {
		h.links = &Links{slices.Clone(c.Supersedes), slices.Clone(c.Contradicts), slices.Clone(c.Generalizes)}
	}
	return h
}

// Expired reports whether the card's date of expiry has passed.
func (h *Head) Expired(now time.Time) bool { return h.Expires != nil && now.After(*h.Expires) }
