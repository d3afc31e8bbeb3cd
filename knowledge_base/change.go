package knowledgebase

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/secrets"
	"anamnesis/opstream/durable"
)

// MaxChangeBytes is how many bytes of cards one change may write.
const MaxChangeBytes = 64 << 20

// programName returns the author of the program's own commits.
func programName() history.Person {
	return history.Person{Name: "anamnesis", Email: "anamnesis@localhost"}
}

// applyChange writes a planned change. Both locks are held, and the folder is
// settled.
func (s *Store) applyChange(ch Change, todo []planned) error {
	if len(todo) == 0 {
		return nil
	}
	in := intent.New(s.folder.Index, s.opts.Now())
	in.Message, in.Author = ch.Message, programName()
	if ch.By == Person {
		in.Author = s.person()
	}
	in.Message = cmp.Or(in.Message, describe(todo))
	size := 0
	for _, p := range todo {
		rel, err := filepath.Rel(s.dir, p.Path)
		if err != nil {
			return err
		}
		f := intent.File{Path: filepath.ToSlash(rel), Data: string(p.data)}
		if p.old != nil {
			f.Before = hex.EncodeToString(p.old.Sum[:])
			if err := s.saveReplaced(p.old); err != nil {
				return err
			}
		}
		in.Files = append(in.Files, f)
		if size += len(p.data); size > MaxChangeBytes {
			return fmt.Errorf("the change has more than %d bytes; make it in parts", MaxChangeBytes)
		}
	}
	if ch.By == Person {
		if err := s.recordReviews(todo); err != nil {
			return fmt.Errorf("note the review: %w", err)
		}
	}
	// From here on, the next opening completes the change after a crash: the intent holds the new bytes.
	if err := in.Write(s.fs); err != nil {
		return err
	}
	if err := s.writeFiles(todo); err != nil {
		return errors.Join(err, s.rollback(todo, in.Path))
	}
	// The change is complete with its files. A commit that cannot be made now is made at the next change.
	s.histErr = s.commitIntent(&in)
	return s.enter(todo)
}

func (s *Store) writeFiles(todo []planned) error {
	for i, p := range todo {
		if err := durable.MakeDir(s.fs, filepath.Dir(p.Path)); err != nil {
			return err
		}
		if err := durable.WriteFile(s.fs, p.Path, p.data); err != nil {
			return err
		}
		if s.opts.Progress != nil {
			s.opts.Progress(i+1, len(todo))
		}
	}
	return nil
}

// rollback undoes a change that could not be written whole. If that fails as well, the intent
// remains, and the next opening completes the change.
func (s *Store) rollback(todo []planned, intentPath string) error {
	for _, p := range todo {
		now, err := os.ReadFile(p.Path)
		if err != nil || !bytes.Equal(now, p.data) {
			continue // not written
		}
		if p.old != nil {
			err = durable.WriteFile(s.fs, p.Path, p.old.Card.Clone().Source())
		} else if err = os.Remove(p.Path); err == nil {
			err = s.fs.SyncDir(filepath.Dir(p.Path)) // before the intent is removed: see [intent.Intent.Replay]
		}
		if err != nil {
			return fmt.Errorf("the change stays half made until the knowledge base is opened again: %w", err)
		}
	}
	return os.Remove(intentPath)
}

// describe returns the commit message of a change that has none.
func describe(todo []planned) string {
	var list []string
	verb := ""
	for _, p := range todo {
		v := "Edit"
		switch {
		case p.old == nil:
			v = "Add"
		case p.card.ParsedID() == "":
			v = "Write anew"
		}
		if verb != "" && verb != v {
			v = "Change"
		}
		verb = v
		list = append(list, p.card.Topic)
	}
	if len(list) == 1 {
		return verb + " card: " + list[0]
	}
	return fmt.Sprintf("%s %d cards\n\n- %s", verb, len(list), strings.Join(list, "\n- "))
}

// prepareChange completes changes that a dead writer left, and commits edits by hand. The
// caller holds both locks. Only failures of the files are returned; one of the history
// is reported by [Store.HistoryError].
func (s *Store) prepareChange() error {
	if err := s.completePending(); err != nil || s.opts.NoHistory || s.histErr != nil {
		return err
	}
	if s.histErr = s.openHistory(); s.histErr == nil {
		s.histErr = s.commitHandEdits()
	}
	return nil
}

func (s *Store) openHistory() (err error) {
	if s.repo == nil {
		s.repo, err = history.Create(s.dir, "/"+indexDir+"/", "/"+replacedDir+"/", "/"+usageFile, "/"+reviewsFile,
			"/"+ownReviewsFile, durable.TempPrefix+"*")
	}
	return err
}

// replay writes the files of an intent. In memory, it enters the cards that it wrote and removes those whose file it
// removed.
func (s *Store) replay(in *intent.Intent) error {
	return in.Replay(s.fs, s.dir, func(path string) {
		st, err := s.readCard(path)
		switch {
		case err == nil && s.cards != nil:
			s.setCard(st)
		case errors.Is(err, fs.ErrNotExist):
			maps.DeleteFunc(s.cards, func(_ string, c *folder.File) bool { return filepath.Clean(c.Path) == path })
			s.broken = slices.DeleteFunc(s.broken, func(b BrokenCard) bool { return filepath.Clean(b.Path) == path })
			s.filled = false
		}
	})
}

// completePending completes the changes of dead writers and commits what waits for it.
func (s *Store) completePending() error {
	s.histErr = nil
	pending, err := intent.Pending(s.folder.Index)
	if err != nil {
		return err
	}
	if len(pending) > 0 && !s.opts.NoHistory {
		s.histErr = s.openHistory()
	}
	for i := range pending {
		in := &pending[i]
		if in.Mark != "" {
			err = s.completeRedaction(in, secrets.NewScrubber(s.opts.Redact))
		} else if err = s.replay(in); err == nil && s.histErr == nil {
			s.histErr = s.commitIntent(in)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// commitIntent commits the files that hold what the intent says and removes the intent. If no
// commit can be made now, the intent waits.
func (s *Store) commitIntent(in *intent.Intent) error {
	if s.opts.NoHistory {
		return os.Remove(in.Path)
	}
	if s.repo == nil {
		return in.Wait(s.histErr)
	}
	files := make(map[string][]byte)
	for i := range in.Files {
		f := &in.Files[i]
		now, err := intent.SumOf(filepath.Join(s.dir, filepath.FromSlash(f.Path)))
		switch {
		// Another program has changed the file since: the next change commits it as an edit by hand.
		case err != nil || now != f.Sum():
		case f.Gone:
			files[f.Path] = nil
		default:
			files[f.Path] = []byte(f.Data)
		}
	}
	if err := s.commitFiles(in, files); err != nil {
		return in.Wait(err)
	}
	return os.Remove(in.Path)
}

func (s *Store) commitFiles(in *intent.Intent, files map[string][]byte) error {
	c := history.Commit{Message: in.Message, Author: in.Author, By: programName(), At: in.At, Files: files}
	switch {
	case in.Forward:
		c.Forward = in.Theirs // what a user changed meanwhile is committed on top
	case in.Theirs != "":
		c.Merged = in.Theirs
	case len(files) == 0:
		return nil
	}
	_, err := s.repo.Commit(c)
	return err
}

// HistoryError returns why the last change, or edits by hand before it, are not in the history yet;
// nil when they are. The files are written nevertheless, and the next change tries again.
func (s *Store) HistoryError() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.histErr
}

// person returns the author of reviews and of edits by hand.
func (s *Store) person() history.Person {
	if s.opts.Person != (history.Person{}) {
		return s.opts.Person
	}
	return history.Whoami(s.dir)
}
