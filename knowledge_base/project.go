package knowledgebase

import (
	"path/filepath"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/reviews"
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

// noteReviews writes down what the change reviews, before its files: a note
// without its card harms nothing.
func (s *Store) noteReviews(todo []planned) error {
	var lines []reviews.Line
	for _, p := range todo {
		if p.card.State == card.Reviewed {
			lines = append(lines, reviews.Line{V: reviews.Reviewed, Hash: p.card.Hash(), At: s.opts.Now().UTC(), Topic: p.card.Topic})
			s.trusted[p.card.Hash()] = true
		}
	}
	return reviews.Append(s.opts.fs, s.opts.reviews, lines)
}

// noteArrived writes down which lessons a sync brings: until they are reviewed
// here they count as outside text.
func (s *Store) noteArrived(in *intent.Intent) error {
	var lines []reviews.Line
	for _, f := range in.Files {
		c, err := card.Parse([]byte(f.Data))
		if err != nil || f.Gone || !folder.IsCardFile(f.Path) || s.trusted[c.Hash()] || s.arrived[c.Hash()] || s.lessonHere(c) {
			continue
		}
		lines = append(lines, reviews.Line{V: reviews.Arrived, Hash: c.Hash(), At: s.opts.Now().UTC(), Topic: c.Topic})
		s.arrived[c.Hash()] = true
	}
	return reviews.Append(s.opts.fs, s.opts.reviews, lines)
}

// lessonHere reports whether a card says here what c says.
func (s *Store) lessonHere(c *card.Card) bool {
	st := s.cards[s.lessons[folder.LessonOf(c).Mark()]]
	return st != nil && st.Lesson == folder.LessonOf(c)
}

// judge takes what a card claims about itself for what it is here: reviewed, and
// when, counts if it was reviewed on this machine, and what arrived from
// elsewhere is outside text until then.
func (s *Store) judge(st *folder.File) *folder.File {
	if !st.Claimed && !st.Outside && len(s.arrived) == 0 && st.State != card.Reviewed && st.VerifiedAt == nil {
		return st // as nearly all; what follows would say so
	}
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
