// Package folder reads the files of a folder of cards, keeps what reading them returned for
// the next time, and notices where others change them.
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
	"unicode/utf8"

	"anamnesis/knowledge_base/card"
)

// slugBytes bounds the part of a file's name that is made of the topic.
const slugBytes = 96

// File is a card with its file. It is never changed, only replaced.
type File struct {
	*card.Card            // as it counts here, not to be changed
	Stated     *card.Card // as the file says it, likewise
	Path       string
	Lesson     Lesson
	Sum        [sha256.Size]byte // of the file
	Claimed    bool              // the file says reviewed, and that does not count here
	Outside    bool              // the card arrived from elsewhere, and was not reviewed here
}

// NewFile is a card parsed from src, which the caller leaves unchanged.
func NewFile(c *card.Card, path string, src []byte) *File {
	return &File{Card: c, Stated: c, Path: path, Lesson: LessonOf(c), Sum: sha256.Sum256(src)}
}

// Judged returns the file of a card whose claim of a review does not count here, or that is outside
// text here.
func (st *File) Judged(claimed, outside bool) *File {
	judged := *st
	judged.Card, judged.Claimed, judged.Outside = st.Stated.Clone(), claimed, outside
	if claimed {
		judged.VerifiedAt = nil
		if judged.State == card.Reviewed {
			judged.State = card.Draft
		}
	}
	if outside {
		judged.Provenance.Tainted = true
	}
	return &judged
}

// Lesson names what a card says: the bytes of its [card.Card.Hash].
type Lesson [sha256.Size]byte

func LessonOf(c *card.Card) (l Lesson) {
	if n, err := hex.Decode(l[:], []byte(c.Hash())); err != nil || n != len(l) {
		panic("knowledge base: a card's hash is no SHA-256 in hex")
	}
	return l
}

func (l Lesson) String() string { return hex.EncodeToString(l[:]) }

// Findable returns what the card is found by.
func (st *File) Findable() string { return findableText(st.Stated) }

// Fingerprint is how users and other programs name the file's bytes.
func (st *File) Fingerprint() string { return Fingerprint(st.Sum) }

// Fingerprint names a file's bytes by their sum.
func Fingerprint(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:8]) }

// FileName returns the name of a card's file: the topic's letters and digits, and the id.
func FileName(topic, id string) string {
	name := make([]byte, 0, slugBytes+len("-.md")+len(id))
	dash := false
	for _, r := range topic {
		r = unicode.ToLower(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			dash = len(name) > 0
			continue
		}
		if len(name)+utf8.RuneLen(r) >= slugBytes {
			break
		}
		if dash {
			name = append(name, '-')
			dash = false
		}
		name = utf8.AppendRune(name, r)
	}
	if len(name) == 0 {
		name = append(name, "card"...)
	}
	name = append(append(name, '-'), id...)
	return string(append(name, ".md"...))
}

// findableText returns topic, bullets but for the rest of a change, tags, and scope.
func findableText(c *card.Card) string {
	parts := []string{c.Topic}
	for _, text := range c.Bullets() {
		if !card.IsRest(text) {
			parts = append(parts, text)
		}
	}
	parts = append(parts, strings.Join(c.Tags, " "), c.Scope.Language, c.Scope.Tool)
	return strings.Join(parts, "\n")
}
