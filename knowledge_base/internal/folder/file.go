// Package folder reads the files of a folder of cards, keeps what reading them returned for
// the next time, and notices where others change them.
package folder

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"
	"unique"

	"anamnesis/knowledge_base/card"
)

// slugBytes bounds the part of a file's name that is made of the topic.
const slugBytes = 96

// File is a card with its file. It is never changed, only replaced.
type File struct {
	card.Head                       // as the card counts here
	whole     *card.Card            // as the file says it
	dir       unique.Handle[string] // of the file, which many have
	name      string                // of the file; if "", FileName chooses it
	Lesson    Lesson
	Sum       [sha256.Size]byte // of the file
	Claimed   bool              // the file says reviewed, and that does not count here
	Outside   bool              // the card arrived from elsewhere, and was not reviewed here
}

// NewFile is a card parsed from src, which the caller leaves unchanged.
func NewFile(c *card.Card, path string, src []byte) *File {
	st := &File{Head: c.Head(), whole: c, Lesson: LessonOf(c), Sum: sha256.Sum256(src)}
	st.setPath(path)
	return st
}

// setPath sets where the card's file is.
func (st *File) setPath(path string) {
	dir, name := filepath.Split(path)
	st.dir, st.name = unique.Make(dir), ""
	if name != FileName(st.Topic, st.ID) {
		st.name = strings.Clone(name)
	}
}

// Path is where the card's file is.
func (st *File) Path() string { return st.dir.Value() + st.Base() }

// Dir is the folder that holds the file.
func (st *File) Dir() string { return st.dir.Value() }

// Base is the file's name in its folder.
func (st *File) Base() string {
	if st.name == "" {
		return FileName(st.Topic, st.ID)
	}
	return st.name
}

// Lesson names what a card says: the bytes of its [card.Card.Hash].
type Lesson [sha256.Size]byte

// LessonOf returns the lesson of a card.
func LessonOf(c *card.Card) (l Lesson) {
	if n, err := hex.Decode(l[:], []byte(c.Hash())); err != nil || n != len(l) {
		panic("knowledge base: a card's hash is no SHA-256 in hex")
	}
	return l
}

func (l Lesson) String() string { return hex.EncodeToString(l[:]) }

// Mark is enough of a lesson to look cards up by: the caller then compares the lessons.
func (l Lesson) Mark() Mark { return Mark(l[:8]) }

// Mark is the beginning of a lesson.
type Mark [8]byte

// Card returns the card as it counts here, for the caller to change.
func (st *File) Card() *card.Card {
	c := st.whole.Clone()
	c.State = st.State
	if st.Claimed {
		c.VerifiedAt = nil
	}
	if st.Outside {
		c.Provenance.Tainted = true
	}
	return c
}

// Stated returns the card as its file says it, for the caller to change.
func (st *File) Stated() *card.Card { return st.whole.Clone() }

// Findable returns what the card is found by.
func (st *File) Findable() string { return findableText(st.whole) }

// Fingerprint is how users and other programs name the file's bytes.
func (st *File) Fingerprint() string { return Fingerprint(st.Sum) }

// Fingerprint names a file's bytes by their sum.
func Fingerprint(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:8]) }

// FileName returns <slug>-<id>.md. It is asked for each card at each look at the
// folder.
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
