package knowledgebase

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/opstream/durable"
)

// commitHandEdits commits what people changed with an editor.
func (s *Store) commitHandEdits() error {
	head, err := s.repo.Head()
	if err != nil {
		return err
	}
	note, noted := s.noteOf(head), s.noted()
	var files []string
	known := s.read && len(s.broken) == 0
	if !known || note != noted {
		if files, known, err = s.look(); err != nil {
			return err
		}
	}
	if s.read = false; known && head != "" && note == noted {
		s.clean = head
		return nil
	}
	edits, err := s.repo.Uncommitted(files, folder.IsCardFile, card.MaxBytes)
	if err != nil {
		return err
	}
	known = !s.leaveSecrets(edits) && known
	if len(edits) == 0 {
		if known && s.checkBrought() == nil {
			s.noteClean(head)
		}
		return nil
	}
	c := history.Commit{Author: s.person(), By: programName(), At: s.opts.Now(), Files: edits}
	paths := slices.Sorted(maps.Keys(edits))
	switch {
	case head == "":
		c.Author, c.Message = programName(), fmt.Sprintf("Begin the history of %d cards", len(paths))
	case len(paths) == 1:
		c.Message = "Edited by hand: " + s.nameOf(paths[0], edits[paths[0]])
	default:
		c.Message = fmt.Sprintf("Edited by hand: %d cards\n\n- %s", len(paths), strings.Join(paths, "\n- "))
	}
	if head != "" {
		if err := s.noteHandReviews(edits); err != nil {
			return err
		}
	}
	id, _, err := s.repo.Commit(c)
	if err == nil && known {
		s.noteClean(id)
	}
	return err
}

// noteHandReviews takes a state that a user wrote into a file for their review.
// What git brought into the folder is in a commit already, and what a sync brings
// is noted as such before.
func (s *Store) noteHandReviews(edits map[string][]byte) error {
	var todo []planned
	for _, data := range edits {
		if c, err := card.Parse(data); err == nil && !s.reviews.Knows(c.Hash()) {
			todo = append(todo, planned{card: c})
		}
	}
	if err := s.noteReviews(todo); err != nil {
		return err
	}
	for _, p := range todo {
		if st := s.cards[p.card.ID]; st != nil {
			s.remember(s.reviews.Judge(st))
		}
	}
	return nil
}

// handReviews looks for reviews that a user wrote into files since the last
// commit.
func (s *Store) handReviews() error {
	edits := make(map[string][]byte)
	for _, st := range s.cards {
		if st.Claimed && !s.reviews.Arrived[st.Lesson.String()] {
			edits[st.Path()] = folder.Unpack(st.Whole).Source()
		}
	}
	if len(edits) == 0 || s.opts.NoHistory {
		return nil
	}
	repo, err := history.Open(s.dir)
	if err != nil {
		return nil // without a history there is nothing to compare with
	}
	head, err := repo.Head()
	if err != nil || head == "" {
		return nil
	}
	for path, data := range edits {
		rel, err := filepath.Rel(s.dir, path)
		if err != nil {
			return err
		}
		if was, err := repo.Read(head, filepath.ToSlash(rel)); err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && bytes.Equal(was, data) {
			delete(edits, path)
		}
	}
	return s.noteHandReviews(edits)
}

// leaveSecrets takes the files out that hold a secret: they stay as the user
// wrote them, and out of the history.
func (s *Store) leaveSecrets(edits map[string][]byte) (found bool) {
	for path, data := range edits {
		var markers []string
		if s.redact().Text(path+"\n"+string(data), &markers); len(markers) > 0 {
			delete(edits, path)
			found = true
			s.Notice("%s holds a secret (%s) and was not added to the history; take it out of the file, or run 'anamnesis kb redact'", s.redact().Text(path, &markers), markers[0])
		}
	}
	return found
}

// nameOf returns the topic of a card, or its path where it has none to read.
func (s *Store) nameOf(path string, data []byte) string {
	if c, err := card.Parse(data); err == nil {
		return c.Topic
	}
	return path
}

// look returns the names of the folder's files, and whether they are the cards in memory.
// It looks at each file.
func (s *Store) look() (files []string, known bool, err error) {
	files, err = s.folder.Names()
	if err != nil || len(files) != len(s.cards) {
		return files, false, err
	}
	paths, cards := make([]string, len(files)), s.byPath()
	for i, name := range files {
		paths[i] = filepath.Join(s.dir, filepath.FromSlash(name))
	}
	return files, s.unchanged(paths, cards), nil
}

// unchanged reports whether the files at paths hold what they held when the cards, by
// path, were read or written.
func (s *Store) unchanged(paths []string, cards map[string]*folder.File) bool {
	all, err := s.folder.ReadAll(context.Background(), paths, cards, nil)
	for i, now := range all {
		was := cards[paths[i]]
		if now.Err != nil || was == nil || now.File.Sum != was.Sum {
			return false
		}
		s.cards[was.ID] = now.File // with its marks, so that it is not read the next time
	}
	return err == nil
}

// A commit whose cards are the files of the folder is noted in .index with a sum over
// them: a process that finds the same commit and reads the same files knows that nothing
// was changed by hand, without git's trees and index. A note that is absent or torn says
// nothing.
func (s *Store) notePath() string { return filepath.Join(s.folder.Index, "committed") }

// noteOf returns the note that says that the commit holds the cards in memory. Their order
// does not matter.
func (s *Store) noteOf(commit string) string {
	var all [sha256.Size]byte
	var b []byte
	for _, st := range s.cards {
		b = st.AppendFile(b[:0])
		one := sha256.Sum256(b)
		subtle.XORBytes(all[:], all[:], one[:])
	}
	return fmt.Sprintf("%s %x\n", commit, all)
}

func (s *Store) noted() string {
	data, _ := os.ReadFile(s.notePath()) // "" is no note
	return string(data)
}

// noteClean notes that the commit holds the cards in memory.
func (s *Store) noteClean(commit string) {
	s.clean = commit
	_ = os.WriteFile(s.notePath(), []byte(s.noteOf(commit)), durable.FileMode) // the next process asks git
}
