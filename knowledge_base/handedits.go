package knowledgebase

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
)

// commitHandEdits commits what people changed with an editor.
func (s *Store) commitHandEdits() error {
	head, err := s.repo.Head()
	if err != nil {
		return err
	}
	files, err := s.folder.Names()
	if err != nil {
		return err
	}
	edits, err := s.repo.Uncommitted(files, folder.IsCardFile, card.MaxBytes)
	if err != nil {
		return err
	}
	s.withholdSecrets(edits)
	if len(edits) == 0 {
		return nil
	}
	c := history.Commit{Author: s.person(), By: programName(), At: s.opts.Now(), Files: edits}
	paths := slices.Sorted(maps.Keys(edits))
	switch {
	case head == "": // these are all cards there are, also those that the program wrote
		c.Author, c.Message = programName(), fmt.Sprintf("Begin the history of %d cards", len(paths))
	case len(paths) == 1:
		c.Message = "Edited by hand: " + s.nameOf(paths[0], edits[paths[0]])
	default:
		c.Message = fmt.Sprintf("Edited by hand: %d cards\n\n- %s", len(paths), strings.Join(paths, "\n- "))
	}
	if head != "" { // otherwise no commit shows which states are new
		if err := s.recordHandReviews(edits); err != nil {
			return err
		}
	}
	_, err = s.repo.Commit(c)
	return err
}

// recordHandReviews records the state that a user wrote into a file as their review.
// What git brought into the folder is in a commit already, and what a sync brings
// is noted as such before.
func (s *Store) recordHandReviews(edits map[string][]byte) error {
	var todo []planned
	for _, data := range edits {
		if c, err := card.Parse(data); err == nil && !s.reviews.Knows(c.Hash()) {
			todo = append(todo, planned{card: c})
		}
	}
	if err := s.recordReviews(todo); err != nil {
		return err
	}
	for _, p := range todo {
		if st := s.cards[p.card.ID]; st != nil {
			s.setCard(s.reviews.Judge(st))
		}
	}
	return nil
}

// detectHandReviews looks for reviews that a user wrote into files since the last
// commit.
func (s *Store) detectHandReviews() error {
	edits := make(map[string][]byte)
	for _, st := range s.cards {
		if st.Claimed && !s.reviews.Arrived[st.Lesson.String()] {
			rel, err := filepath.Rel(s.dir, st.Path)
			if err != nil {
				return err
			}
			edits[filepath.ToSlash(rel)] = st.Stated.Source()
		}
	}
	if len(edits) == 0 || s.opts.NoHistory {
		return nil
	}
	repo, err := history.Open(s.dir)
	if err != nil {
		return nil // without a history there is nothing to compare with
	}
	if edits, err = repo.Differing(edits); err != nil {
		return nil // a repository that cannot be read is reported by the next change
	}
	return s.recordHandReviews(edits)
}

// withholdSecrets removes from edits the files that hold a secret: they stay as the user
// wrote them, and out of the history.
func (s *Store) withholdSecrets(edits map[string][]byte) {
	for path, data := range edits {
		var markers []string
		if s.redact().Text(path+"\n"+string(data), &markers); len(markers) > 0 {
			delete(edits, path)
			s.Notice("%s holds a secret (%s) and was not added to the history; take it out of the file, "+
				"or redact the folder", s.redact().Text(path, &markers), markers[0])
		}
	}
}

// nameOf returns the topic of a card, or its path where it has none to read.
func (s *Store) nameOf(path string, data []byte) string {
	if c, err := card.Parse(data); err == nil {
		return c.Topic
	}
	return path
}
