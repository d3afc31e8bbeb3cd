package knowledgebase

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
)

// ErrBothChanged is returned by [Store.Sync] for a file that is no card and was changed on both
// sides: merging it is a user's.
var ErrBothChanged = errors.New("changed on both sides, and no card: merge it with git")

// Synced is what a sync did.
type Synced struct {
	Paths []string `json:"taken"` // that came from the remote
	// Conflicts are ids of cards changed on both sides, or the path of one that cannot be read. The other version is
	// beside it.
	Conflicts []string `json:"conflicts"`
	Drafts    []string `json:"drafts"`  // ids of cards that were reviewed here and that the remote has in another state
	Renamed   []Rename `json:"renamed"` // cards of the remote whose id stands for another card here
	Pushed    bool     `json:"pushed"`
}

// Rename is a card that got another id.
type Rename struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// mergeFile decides about one file that changed there: in becomes what is to be written, and out
// what was decided. Nothing of either side is lost. An id stands for the card that has it here: a
// lesson that was reviewed here is not replaced by another, and a new file does not get the id of one
// that is here.
func (s *Store) mergeFile(side history.Side, in *intent.Intent, out *Synced) error {
	reviewed := s.reviews.Reviewed
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }
	unchanged := same(side.Ours, side.Base)
	switch {
	case same(side.Ours, side.Theirs):
	case folder.IsCardFile(side.Path) &&
		(side.Ours == nil && s.hasElsewhere(&side) || unchanged && replacesReviewed(&side, reviewed)):
		theirs, err := card.Parse(side.Theirs)
		if err != nil {
			return err
		}
		// Here the id names another card or lesson, which the draft therefore contradicts.
		id, err := addDraft(in, side.Path, theirs, theirs)
		in.Forward, out.Renamed = false, append(out.Renamed, Rename{theirs.ID, id})
		return err
	case unchanged:
		listDraft(side, out, reviewed)
		in.Put(side.Path, side.Ours, side.Theirs)
		out.Paths = append(out.Paths, side.Path)
	case !folder.IsCardFile(side.Path):
		return fmt.Errorf("%s: %w", side.Path, ErrBothChanged)
	case side.Theirs == nil: // removed by the remote and changed here: the change wins
	case side.Ours == nil: // removed here and changed by the remote: the change wins
		in.Put(side.Path, nil, side.Theirs)
		out.Paths = append(out.Paths, side.Path)
	default:
		return mergeCards(side, in, out, reviewed)
	}
	return nil
}

// mergeCards lets both versions of a card exist side by side. Where they say
// the same lesson, ours stays if it was reviewed here, else the one verified last.
func mergeCards(side history.Side, in *intent.Intent, out *Synced, trusted map[string]bool) error {
	theirs, err := card.Parse(side.Theirs)
	ours, oursErr := card.Parse(side.Ours)
	if err != nil || oursErr != nil {
		// One of them is no card, so they cannot be compared: the remote's is stored beside, unchanged.
		path := strings.TrimSuffix(side.Path, ".md") + "-theirs-" + intent.Sum(side.Theirs)[:8] + ".md"
		in.Put(path, nil, side.Theirs)
		out.Conflicts = append(out.Conflicts, side.Path)
		return nil
	}
	if theirs.Hash() == ours.Hash() {
		later := theirs.VerifiedAt != nil && (ours.VerifiedAt == nil || theirs.VerifiedAt.After(*ours.VerifiedAt))
		if later && !trusted[ours.Hash()] {
			in.Put(side.Path, side.Ours, side.Theirs)
			out.Paths = append(out.Paths, side.Path)
		}
		return nil
	}
	if _, err := addDraft(in, side.Path, ours, theirs); err != nil {
		return err
	}
	out.Conflicts = append(out.Conflicts, ours.ID)
	return nil
}

// hasElsewhere reports whether the id of a card that a remote brings as a new file stands for another file
// here, unless the remote moved it.
func (s *Store) hasElsewhere(side *history.Side) bool {
	c, err := card.Parse(side.Theirs)
	if err != nil {
		return false
	}
	st, path := s.cards[c.ID], filepath.Join(s.dir, filepath.FromSlash(side.Path))
	return st != nil && st.Path != path && st.Lesson != folder.LessonOf(c)
}

// replacesReviewed reports whether a file says something else than the lesson in it that was reviewed here.
func replacesReviewed(side *history.Side, reviewed map[string]bool) bool {
	ours, err := card.Parse(side.Ours)
	theirs, otherErr := card.Parse(side.Theirs)
	return err == nil && otherErr == nil && reviewed[ours.Hash()] && ours.Hash() != theirs.Hash()
}

// addDraft writes the remote's card as a draft with an id of its own, which contradicts ours.
func addDraft(in *intent.Intent, path string, ours, theirs *card.Card) (id string, err error) {
	twin := theirs.Clone()
	// The id derives from both versions, so that a sync that is tried again writes the same draft.
	twin.ID = card.NewID("sync", ours.ID, theirs.Hash())
	twin.State, twin.VerifiedAt = card.Draft, nil
	if !slices.Contains(twin.Contradicts, ours.ID) {
		twin.Contradicts = append(twin.Contradicts, ours.ID)
	}
	if err := twin.Validate(); err != nil {
		return "", fmt.Errorf("%s: the remote's version: %w", path, err)
	}
	beside := filepath.Join(filepath.Dir(path), folder.FileName(twin.Topic, twin.ID))
	in.Put(filepath.ToSlash(beside), nil, twin.Markdown())
	return twin.ID, nil
}

// listDraft lists a card that counted as reviewed here and that the remote's
// version makes something else.
func listDraft(side history.Side, out *Synced, trusted map[string]bool) {
	ours, err := card.Parse(side.Ours)
	if err != nil || ours.State != card.Reviewed || !trusted[ours.Hash()] {
		return
	}
	theirs, err := card.Parse(side.Theirs)
	if err != nil || theirs.Hash() != ours.Hash() || theirs.State != card.Reviewed {
		out.Drafts = append(out.Drafts, ours.ID)
	}
}
