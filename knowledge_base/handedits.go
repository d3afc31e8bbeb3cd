package knowledgebase

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
)

// commitHandEdits commits what people changed with an editor.
func (s *Store) commitHandEdits() error {
	files, err := s.folder.Names()
	if err != nil {
		return err
	}
	head, err := s.repo.Head()
	if err != nil {
		return err
	}
	if head != "" && head == s.clean && s.allCommitted(len(files)) {
		return nil
	}
	edits, err := s.repo.Uncommitted(files, folder.IsCardFile, card.MaxBytes)
	if err != nil {
		return err
	}
	s.clean = ""
	secret := s.leaveSecrets(edits)
	if len(edits) == 0 && secret {
		return nil
	}
	if len(edits) == 0 {
		// What a process that changes cards once never asks for is not looked at. A
		// file that is no card of memory would not be missed when it goes.
		if s.looked && len(files) == len(s.cards) {
			s.noteCommitted(head)
		}
		s.looked = true
		return nil
	}
	c := history.Commit{Author: s.person(), By: programName(), At: s.opts.Now(), Files: edits}
	paths := make([]string, 0, len(edits))
	for p := range edits {
		paths = append(paths, p)
	}
	slices.Sort(paths)
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
	_, err = s.repo.Commit(c)
	return err
}

// noteHandReviews takes a state that a user wrote into a file for their review.
// What git brought into the folder is in a commit already, and what a sync brings
// is noted as such before.
func (s *Store) noteHandReviews(edits map[string][]byte) error {
	var todo []planned
	for _, data := range edits {
		if c, err := card.Parse(data); err == nil && !s.arrived[c.Hash()] && !s.trusted[c.Hash()] {
			todo = append(todo, planned{card: c})
		}
	}
	if err := s.noteReviews(todo); err != nil {
		return err
	}
	for _, p := range todo {
		if st := s.cards[p.card.ID]; st != nil {
			s.remember(s.judge(st))
		}
	}
	return nil
}

// handReviews looks for reviews that a user wrote into files since the last
// commit.
func (s *Store) handReviews() error {
	edits := make(map[string][]byte)
	for _, st := range s.cards {
		if st.Claimed && !s.arrived[st.Lesson.String()] {
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

// allCommitted reports whether the folder's files, so many, are the cards in
// memory and all of them as the commit clean holds them. It looks at each file
// but needs neither git's index nor the commit's trees.
func (s *Store) allCommitted(files int) bool {
	if files != len(s.cards) {
		return false
	}
	folders := make(map[string]*os.File)
	defer func() {
		for _, f := range folders {
			f.Close()
		}
	}()
	for _, st := range s.cards {
		dir := st.Dir()
		if folders[dir] == nil {
			f, err := os.Open(dir)
			if err != nil {
				return false
			}
			folders[dir] = f
		}
		if !st.Committed {
			return false
		}
		now, err := disk.MarksAt(int(folders[dir].Fd()), st.Base(), s.opts.clock())
		if (err != nil || !st.Marks.Vouch(now)) && !s.unchanged(st) {
			return false
		}
	}
	return true
}

// unchanged reports whether a card's file still holds what it held when it was
// read or written.
func (s *Store) unchanged(st *folder.File) bool {
	before, err := disk.MarksOf(st.Path(), s.opts.clock())
	if err != nil || st.Marks.Vouch(before) {
		return err == nil
	}
	if !before.Regular || before.Size > card.MaxBytes {
		return false // no card any more, and reading it may never end
	}
	if sum, err := intent.SumOf(st.Path()); err != nil || sum != hex.EncodeToString(st.Sum[:]) {
		return false
	}
	if after, err := disk.MarksOf(st.Path(), s.opts.clock()); err == nil && before.Vouch(after) {
		with := *st
		with.Marks = before // so that it is not read the next time
		s.cards[st.ID] = &with
	}
	return true
}

// noteCommitted notes that the files are as head has them, after a look at all
// of them. A card counts as committed where its file cannot have changed since
// it was read.
func (s *Store) noteCommitted(head string) {
	s.clean = head
	for _, st := range s.cards {
		now, err := disk.MarksOf(st.Path(), s.opts.clock())
		if same := err == nil && st.Marks.Vouch(now); same != st.Committed {
			s.setCommitted(st, same)
		}
	}
}

// setCommitted replaces the card by one with the mark: readers may hold it.
func (s *Store) setCommitted(st *folder.File, committed bool) {
	with := *st
	with.Committed = committed
	s.cards[st.ID] = &with
}
