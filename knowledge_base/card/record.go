package card

import (
	"strings"
	"time"

	"anamnesis/knowledge_base/sealed"
)

// RecordVersion is the version of records and of how [Parse] reads a text. Records of
// another version are ignored. A test fails when it must be raised.
const RecordVersion = 3

// WriteRecord adds the parsed card to w, so that [ReadRecord] returns it without
// parsing. The card must come from [Parse] and be unchanged.
func (c *Card) WriteRecord(w *sealed.Writer) {
	src := c.origin.src
	w.Text(src)
	for _, s := range c.texts() {
		writePart(w, src, *s)
	}
	for _, list := range c.lists() {
		w.Uint(uint64(len(*list)))
		for _, s := range *list {
			writePart(w, src, s)
		}
	}
	for _, t := range []*time.Time{&c.Created, c.VerifiedAt, c.Expires} {
		writeTime(w, t)
	}
	w.Uint(c.Provenance.JumpOp)
	tainted := uint64(0)
	if c.Provenance.Tainted {
		tainted = 1
	}
	w.Uint(tainted)
	w.Uint(uint64(len(c.Provenance.Ranges)))
	for _, r := range c.Provenance.Ranges {
		w.Uint(r.First)
		w.Uint(r.Last)
	}
}

// ReadRecord reads a card that [Card.WriteRecord] wrote. The card is valid only if the
// reader is OK afterwards.
func ReadRecord(r *sealed.Reader) *Card {
	src := r.Text()
	c := &Card{origin: &origin{src: src}}
	for _, s := range c.texts() {
		*s = readPart(r, src)
	}
	for _, list := range c.lists() {
		if n := r.Count(); n > 0 {
			*list = make([]string, n)
		}
		for i := range *list {
			(*list)[i] = readPart(r, src)
		}
	}
	if t := readTime(r); t != nil {
		c.Created = *t
	}
	c.VerifiedAt, c.Expires = readTime(r), readTime(r)
	c.Provenance.JumpOp = r.Uint()
	c.Provenance.Tainted = r.Uint() == 1
	if n := r.Count(); n > 0 {
		c.Provenance.Ranges = make([]Range, n)
	}
	for i := range c.Provenance.Ranges {
		c.Provenance.Ranges[i] = Range{First: r.Uint(), Last: r.Uint()}
	}
	c.origin.id = c.ID
	return c
}

// texts returns the places of the card's single texts.
func (c *Card) texts() []*string {
	return []*string{&c.Topic, &c.SourceTask, &c.ID, &c.Scope.Repo, &c.Scope.Language, &c.Scope.Tool, &c.Scope.Version,
		&c.Provenance.Task, &c.Provenance.Model, &c.Provenance.EvidenceHash, (*string)(&c.State)}
}

// lists returns the places of the card's lists of texts.
func (c *Card) lists() []*[]string {
	return []*[]string{&c.Supersedes, &c.Contradicts, &c.Generalizes, &c.Tags, &c.Issue, &c.Solution, &c.Constraint, &c.Provenance.Shown}
}

// writePart adds a text by its place in src, or as it is where it has none.
func writePart(w *sealed.Writer, src, s string) {
	w.Uint(uint64(len(s)))
	if s == "" {
		return
	}
	i := strings.Index(src, s)
	w.Uint(uint64(i + 1))
	if i < 0 {
		w.Bytes([]byte(s))
	}
}

func readPart(r *sealed.Reader, src string) string {
	n := r.Uint()
	if n == 0 {
		return ""
	}
	if n > sealed.MaxBytes {
		r.Fail()
		return ""
	}
	switch at := r.Uint(); {
	case at == 0:
		return string(r.Bytes(int(n)))
	case at <= uint64(len(src)) && n <= uint64(len(src))-(at-1):
		return src[at-1 : at-1+n]
	}
	r.Fail()
	return ""
}

// writeTime adds a time, or that there is none. Parsed times are in UTC.
func writeTime(w *sealed.Writer, t *time.Time) {
	if t == nil {
		w.Uint(0)
		return
	}
	w.Uint(1)
	w.Uint(uint64(t.Unix()))
	w.Uint(uint64(t.Nanosecond()))
}

func readTime(r *sealed.Reader) *time.Time {
	if r.Uint() == 0 {
		return nil
	}
	t := time.Unix(int64(r.Uint()), int64(r.Uint())).UTC()
	return &t
}
