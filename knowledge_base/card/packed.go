package card

import (
	"slices"
	"strings"
	"time"
	"unique"

	"anamnesis/knowledge_base/sealed"
)

// Head is the part of a card that listing, ranking and access checks need. It shares no
// memory with the card.
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
	f := c.fields()
	h := Head{ID: strings.Clone(f.ID), Topic: strings.Clone(f.Topic), SourceTask: shared(f.SourceTask), State: State(shared(string(f.State))),
		Created: f.Created, VerifiedAt: f.VerifiedAt, Expires: f.Expires, Task: shared(f.Provenance.Task), Tainted: f.Provenance.Tainted}
	if len(f.Supersedes)+len(f.Contradicts)+len(f.Generalizes) == 0 {
		return h
	}
	h.links = &Links{f.Supersedes, f.Contradicts, f.Generalizes}
	for _, list := range [][]string{f.Supersedes, f.Contradicts, f.Generalizes} {
		for i, s := range list {
			list[i] = strings.Clone(s)
		}
	}
	return h
}

// WriteRecord adds the head to w, for [ReadHead].
func (h *Head) WriteRecord(w *sealed.Writer) {
	for _, s := range []string{h.ID, h.Topic, h.SourceTask, string(h.State), h.Task} {
		writeText(w, s)
	}
	for _, t := range []*time.Time{&h.Created, h.VerifiedAt, h.Expires} {
		writeTime(w, t)
	}
	flags := uint64(0)
	if h.Tainted {
		flags |= 1
	}
	if h.links != nil {
		flags |= 2
	}
	w.Uint(flags)
	if h.links == nil {
		return
	}
	for _, list := range h.links.lists() {
		w.Uint(uint64(len(*list)))
		for _, s := range *list {
			writeText(w, s)
		}
	}
}

// ReadHead reads a head that [Head.WriteRecord] wrote; it is good if the reader is OK
// afterwards. Heads read with one map of texts share those that many cards have.
func ReadHead(r *sealed.Reader, texts map[string]string) Head {
	text := func() string { return string(r.Bytes(r.Count())) }
	shared := func() string {
		b := r.Bytes(r.Count())
		s, ok := texts[string(b)]
		if !ok {
			s = string(b)
			texts[s] = s
		}
		return s
	}
	h := Head{ID: text(), Topic: text(), SourceTask: shared(), State: State(shared()), Task: shared()}
	if t := readTime(r); t != nil {
		h.Created = *t
	}
	h.VerifiedAt, h.Expires = readTime(r), readTime(r)
	flags := r.Uint()
	h.Tainted = flags&1 != 0
	if flags&2 == 0 {
		return h
	}
	h.links = &Links{}
	for _, list := range h.links.lists() {
		if n := r.Count(); n > 0 {
			*list = make([]string, n)
		}
		for i := range *list {
			(*list)[i] = text()
		}
	}
	return h
}

func (l *Links) lists() []*[]string {
	return []*[]string{&l.Supersedes, &l.Contradicts, &l.Generalizes}
}

func writeText(w *sealed.Writer, s string) {
	w.Uint(uint64(len(s)))
	w.Bytes([]byte(s))
}

// shared returns the one copy of a text that many cards have.
func shared(s string) string { return unique.Make(s).Value() }

// Expired reports whether the card's date of expiry has passed.
func (h *Head) Expired(now time.Time) bool { return h.Expires != nil && now.After(*h.Expires) }

// Packed is a card, whole, in one piece of memory, which a file holds as it is. It is immutable.
// It is not compressed: that would open no faster.
type Packed []byte

// Pack packs a card, which must come from [Parse] or [Packed.Card] and be
// unchanged.
func (c *Card) Pack() Packed {
	var w sealed.Writer
	c.WriteRecord(&w)
	return slices.Clone(w.Unsealed())
}

// Card returns the card, or false if the bytes do not come from [Card.Pack].
func (p Packed) Card() (*Card, bool) {
	r := sealed.NewReader(p)
	c := ReadRecord(r)
	return c, r.OK() && r.Left() == 0
}
