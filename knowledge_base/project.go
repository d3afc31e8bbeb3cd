package knowledgebase

import (
	"path/filepath"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/reviews"
)

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
// it is.
func (o Options) ForProject(global string) *Options {
	o.NoHistory = true
	o.usage, o.reviews = filepath.Join(global, usageFile), filepath.Join(global, reviewsFile)
	return &o
}

// recordReviews records what the change reviews, before its files are written: a review without its card harms nothing.
func (s *Store) recordReviews(todo []planned) error {
	var cards []*card.Card
	for _, p := range todo {
		if p.card.State == card.Reviewed {
			cards = append(cards, p.card)
		}
	}
	err := s.reviews.Record(reviews.Reviewed, s.opts.Now(), cards)
	for i := 0; i < len(cards) && err == nil && s.opts.Reviewed != nil; i++ {
		if failed := s.opts.Reviewed(cards[i].Hash()); failed != nil {
			s.Notice("the review counts in this home only; approve the card again later: %v", failed)
			break
		}
	}
	return err
}

// recordArrived records which lessons a sync brings: until they are reviewed
// here they count as outside text.
func (s *Store) recordArrived(in *intent.Intent) error {
	var cards []*card.Card
	for _, f := range in.Files {
		c, err := card.Parse([]byte(f.Data))
		if err == nil && !f.Gone && folder.IsCardFile(f.Path) && !s.reviews.Knows(c.Hash()) && !s.hasLesson(c) {
			cards = append(cards, c)
		}
	}
	return s.reviews.Record(reviews.Arrived, s.opts.Now(), cards)
}

// hasLesson reports whether a card here says what c says.
func (s *Store) hasLesson(c *card.Card) bool {
	lesson := folder.LessonOf(c)
	st := s.cards[s.lessons[lesson]]
	return st != nil && st.Lesson == lesson
}
