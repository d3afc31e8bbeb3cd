// Package reviews keeps the list of the lessons that were reviewed on this machine, and of
// those that arrived from elsewhere.
package reviews

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/opstream/durable"
)

const (
	Reviewed = 1
	Arrived  = 2
)

type Line struct {
	V     int       `json:"v"`    // 1: a review; 2: the lesson arrived from elsewhere
	Hash  string    `json:"hash"` // card.Card.Hash
	At    time.Time `json:"at"`
	Topic string    `json:"topic"`
}

// List records which lessons were reviewed on this machine, and which arrived from elsewhere, by
// [card.Card.Hash]. A Store's locks guard it.
type List struct {
	Reviewed map[string]bool // on this machine
	Arrived  map[string]bool // from elsewhere
	Bad      int             // lines that cannot be read

	fs   durable.FS
	path string
}

// Open reads the list at path. Lines that cannot be read are counted. Lessons after which files in the folder
// shared are named count as reviewed on this machine; a path that is not absolute names no folder.
func Open(fsys durable.FS, path, shared string) (*List, error) {
	l := &List{Reviewed: make(map[string]bool), Arrived: make(map[string]bool), fs: fsys, path: path}
	if filepath.IsAbs(shared) {
		others, _ := os.ReadDir(shared) // there may be none yet
		for _, review := range others {
			l.Reviewed[review.Name()] = true
		}
	}
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read reviews: %w", err)
	}
	for line := range bytes.Lines(data) {
		line = bytes.TrimRight(line, "\r\n")
		var r Line
		if json.Unmarshal(line, &r) != nil {
			r = Line{} // torn
		}
		switch {
		case (r.V == Reviewed || r.V == Arrived) && len(r.Hash) == sha256.Size*2:
			l.lessons(r.V)[r.Hash] = true
		case len(line) > 0 && r.V <= Arrived: // a later version may write other lines
			l.Bad++
		}
	}
	return l, nil
}

// lessons returns the lessons with one kind of line.
func (l *List) lessons(what int) map[string]bool {
	if what == Reviewed {
		return l.Reviewed
	}
	return l.Arrived
}

func (l *List) Knows(hash string) bool { return l.Reviewed[hash] || l.Arrived[hash] }

// Record adds the lessons of cards to the list, durably. A note without its card harms nothing,
// so it precedes the card's file.
func (l *List) Record(what int, at time.Time, cards []*card.Card) error {
	if len(cards) == 0 {
		return nil
	}
	lines := make([]Line, 0, len(cards))
	for _, c := range cards {
		lines = append(lines, Line{V: what, Hash: c.Hash(), At: at.UTC(), Topic: c.Topic})
	}
	data, err := encode("\n", lines) // an empty line ends what was torn before
	if err != nil {
		return err
	}
	if err := durable.MakeDir(l.fs, filepath.Dir(l.path)); err != nil {
		return err
	}
	if err := durable.Append(l.fs, l.path, data); err != nil {
		return err
	}
	for _, line := range lines {
		l.lessons(what)[line.Hash] = true
	}
	return nil
}

// Follow records for the new text of each card, by index, what the list has for the old one.
func (l *List) Follow(at time.Time, old, now []*card.Card) error {
	for _, what := range []int{Reviewed, Arrived} {
		var news []*card.Card
		for i, c := range now {
			if l.lessons(what)[old[i].Hash()] && !l.lessons(what)[c.Hash()] {
				news = append(news, c)
			}
		}
		if err := l.Record(what, at, news); err != nil {
			return err
		}
	}
	return nil
}

// Judge returns a card's file with its claims replaced by what is recorded on this machine: a review
// counts only if it was made here, and a text that arrived from elsewhere is outside text until
// it is reviewed here.
func (l *List) Judge(st *folder.File) *folder.File {
	if !st.Claimed && !st.Outside && len(l.Arrived) == 0 && st.State != card.Reviewed && st.VerifiedAt == nil {
		return st // as nearly all; what follows would say so
	}
	hash := st.Lesson.String()
	claimed := (st.Claimed || st.State == card.Reviewed || st.VerifiedAt != nil) && !l.Reviewed[hash]
	outside := l.Arrived[hash] && !l.Reviewed[hash]
	if claimed == st.Claimed && outside == st.Outside {
		return st
	}
	return st.Judged(claimed, outside)
}

func Begin(fsys durable.FS, path string, lines []Line) error {
	data, err := encode("", lines)
	if err != nil {
		return err
	}
	return durable.WriteFile(fsys, path, data)
}

func encode(before string, lines []Line) ([]byte, error) {
	var b bytes.Buffer
	for _, r := range lines {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		b.WriteString(before + string(line) + "\n")
	}
	return b.Bytes(), nil
}
