package knowledgebase

import (
	"context"
	"fmt"
	"slices"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/reviews"
	"anamnesis/knowledge_base/usage"
)

// contents is what the folder holds.
type contents struct {
	cards   map[string]*folder.File
	lessons map[folder.Lesson]string // to the id of a card that says it
	broken  []BrokenCard
	usage   *usage.Tally
	// against has the ids of the cards that say, or once said, that they
	// contradict an id.
	against map[string][]string
	reviews *reviews.List // empty until the folder is loaded
	// unrecorded counts the cards whose file says that they were reviewed and of which the list knows nothing.
	unrecorded int
}

func (c *contents) addContradictions(h *card.Card) {
	for _, id := range h.Contradicts {
		if !slices.Contains(c.against[id], h.ID) {
			c.against[id] = append(c.against[id], h.ID)
		}
	}
}

// opposing returns the ids of the cards that contradict one, whichever of the two
// says so: those the card names itself first, then the others sorted.
func (c *contents) opposing(id string) []string {
	var out, others []string
	if st := c.cards[id]; st != nil {
		out = slices.Clone(st.Contradicts)
	}
	for _, other := range c.against[id] {
		if st := c.cards[other]; st != nil && slices.Contains(st.Contradicts, id) && !slices.Contains(out, other) {
			others = append(others, other)
		}
	}
	slices.Sort(others)
	return append(out, others...)
}

// load reads the files into memory, except those unchanged since known, which is keyed
// by path. The caller holds the write lock, or no lock that readers wait for.
func (s *Store) load(ctx context.Context, known map[string]*folder.File) error {
	// The store changes only at the end: after a failure, its contents are the former ones, with their reviews.
	list, err := reviews.Open(s.fs, s.opts.reviews, s.opts.SharedReviews)
	if err != nil {
		return err
	}
	paths, broken, err := s.folder.Paths()
	if err != nil {
		return err
	}
	all, err := s.folder.ReadAll(ctx, paths, known)
	if err != nil {
		return err
	}
	out := contents{
		cards: make(map[string]*folder.File, len(all)), lessons: make(map[folder.Lesson]string, len(all)),
		against: make(map[string][]string), reviews: list,
	}
	for _, b := range broken {
		out.broken = append(out.broken, BrokenCard(b))
	}
	owner := make(map[string]int) // by id: of several files, the one that was reviewed here counts, else the first
	for i := range all {
		r := &all[i]
		if r.Err != nil {
			continue
		}
		r.File = list.Judge(r.File)
		if r.File.Claimed && !list.Knows(r.File.Lesson.String()) {
			out.unrecorded++
		}
		if o, taken := owner[r.File.ID]; !taken || r.File.State == card.Reviewed && all[o].File.State != card.Reviewed {
			owner[r.File.ID] = i
		}
	}
	for i, r := range all {
		if r.Err == nil && owner[r.File.ID] != i {
			id := r.File.ID
			r.Err = card.Errorf(0, "id %s is also used by %s; give one of them another", id, paths[owner[id]])
		}
		if r.Err != nil {
			out.broken = append(out.broken, BrokenCard{Path: paths[i], Err: r.Err})
			continue
		}
		if len(out.cards) == MaxCards {
			return fmt.Errorf("more than %d cards; move some to another folder", MaxCards)
		}
		out.cards[r.File.ID] = r.File
		out.addContradictions(r.File.Card)
		out.lessons[r.File.Lesson] = r.File.ID
	}
	if out.usage, err = usage.Read(s.usagePath()); err != nil {
		return err
	}
	s.contents, s.filled = out, false
	return nil
}

// readCard reads one card as it counts here.
func (s *Store) readCard(path string) (*folder.File, error) {
	st, err := s.folder.Read(path)
	if err != nil {
		return nil, err
	}
	return s.reviews.Judge(st), nil
}
