package knowledgebase

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/recalled"
)

// Query is one search.
type Query = recalled.Query

// Layers are several folders searched as one.
type Layers = recalled.Layers[*Store]

// ProjectDir is where a project's own cards stand, beneath its directory.
const ProjectDir = ".anamnesis/knowledge_base"

// reviewsFile lists, in the global folder, the lessons of projects' cards that
// were reviewed on this machine.
const reviewsFile = "project_reviews.jsonl"

// ownReviewsFile lists, beside the cards, the lessons of the folder itself that
// were reviewed on this machine, and those that arrived from elsewhere.
const ownReviewsFile = "reviews.jsonl"

// ForProject returns the options for a project's own cards. They lie in the
// project's repository, so they get none of their own. global is the folder of
// the global cards: counters and reviews of the project's cards are kept there,
// on this machine. A card that the project ships as reviewed is a draft until
// a user reviews it here; the review holds for what the card says, wherever
// it stands.
func (o Options) ForProject(global string) *Options {
	o.NoHistory = true
	o.usage, o.reviews = filepath.Join(global, usageFile), filepath.Join(global, reviewsFile)
	return &o
}

// reviewed is one line of the list.
type reviewed struct {
	V     int       `json:"v"`    // 1: a review; 2: the lesson arrived from elsewhere
	Hash  string    `json:"hash"` // card.Card.Hash
	At    time.Time `json:"at"`
	Topic string    `json:"topic"`
}

// readReviews returns the hashes of the lessons reviewed here, and of those that
// arrived from elsewhere. A line that a crash tore is no review.
func readReviews(path string) (out, arrived map[string]bool, err error) {
	out, arrived = make(map[string]bool), make(map[string]bool)
	data, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("read reviews: %w", err)
	}
	sc := bufio.NewScanner(bytes.NewReader(data))
	for sc.Scan() {
		var r reviewed
		switch err := json.Unmarshal(sc.Bytes(), &r); {
		case err == nil && r.V == 1:
			out[r.Hash] = true
		case err == nil && r.V == 2:
			arrived[r.Hash] = true
		}
	}
	if err := sc.Err(); err != nil {
		return nil, nil, fmt.Errorf("read reviews %s: %w", path, err)
	}
	return out, arrived, nil
}

// noteReviews writes down what the change reviews, before its files: a note
// without its card harms nothing.
func (s *Store) noteReviews(todo []planned) error {
	var lines []reviewed
	for _, p := range todo {
		if p.card.State == card.Reviewed {
			lines = append(lines, reviewed{1, p.card.Hash(), s.opts.Now().UTC(), p.card.Topic})
			s.trusted[p.card.Hash()] = true
		}
	}
	return s.note(lines)
}

// noteArrived writes down which lessons a sync brings: until they are reviewed
// here they count as outside text.
func (s *Store) noteArrived(in *intent.Intent) error {
	var lines []reviewed
	for _, f := range in.Files {
		c, err := card.Parse([]byte(f.Data))
		if err != nil || f.Gone || !folder.IsCardFile(f.Path) || s.trusted[c.Hash()] || s.arrived[c.Hash()] || s.lessonHere(c) {
			continue
		}
		lines = append(lines, reviewed{2, c.Hash(), s.opts.Now().UTC(), c.Topic})
		s.arrived[c.Hash()] = true
	}
	return s.note(lines)
}

// lessonHere reports whether a card says here what c says.
func (s *Store) lessonHere(c *card.Card) bool {
	st := s.cards[s.lessons[folder.LessonOf(c).Mark()]]
	return st != nil && st.Lesson == folder.LessonOf(c)
}

// note appends to the list, durably.
func (s *Store) note(lines []reviewed) error {
	if len(lines) == 0 {
		return nil
	}
	var b bytes.Buffer
	for _, r := range lines {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		b.WriteString("\n" + string(line) + "\n") // an empty line ends what was torn before
	}
	if err := disk.MakeDir(s.opts.fs, filepath.Dir(s.opts.reviews)); err != nil {
		return err
	}
	f, err := os.OpenFile(s.opts.reviews, os.O_APPEND|os.O_WRONLY|os.O_CREATE, disk.FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	return errors.Join(err, f.Sync(), f.Close())
}

// judge takes what a card claims about itself for what it is here: reviewed, and
// when, counts if it was reviewed on this machine, and what arrived from
// elsewhere is outside text until then.
func (s *Store) judge(st *folder.File) *folder.File {
	hash := st.Lesson.String()
	claimed := (st.Claimed || st.State == card.Reviewed || st.VerifiedAt != nil) && !s.trusted[hash]
	outside := s.arrived[hash] && !s.trusted[hash]
	if claimed == st.Claimed && outside == st.Outside {
		return st
	}
	judged := *st
	judged.Head = folder.Unpack(st.Whole).Head()
	judged.Claimed, judged.Outside = claimed, outside
	if claimed {
		judged.VerifiedAt = nil
		if judged.State == card.Reviewed {
			judged.State = card.Draft
		}
	}
	judged.Tainted = judged.Tainted || outside
	return &judged
}
