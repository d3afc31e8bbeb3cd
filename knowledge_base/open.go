package knowledgebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/reviews"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/opstream/durable"
)

// Open opens the knowledge base in dir, creating it 0700 where it is absent,
// and reads its cards. Files that cannot be read as cards are listed by
// [Store.Broken]; they never make Open fail and are never changed.
func Open(dir string, o *Options) (*Store, error) {
	s := &Store{dir: dir, fs: durable.OS{}, contents: contents{reviews: new(reviews.List)}}
	if o != nil {
		s.opts = *o
	}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if dir == "" {
		return nil, errors.New("open knowledge base: no directory given")
	}
	s.folder = &folder.Folder{Dir: dir, Index: filepath.Join(dir, indexDir)}
	s.index = retrieval.New(&retrieval.Options{
		Embedder: s.opts.Embedder, VectorWait: s.opts.VectorWait, Now: s.opts.Now, Dir: s.folder.Index,
		WriteFile: func(path string, data []byte) error { return durable.WriteFile(s.fs, path, data) },
	})
	own := s.opts.reviews == ""
	if own {
		s.opts.reviews = filepath.Join(dir, ownReviewsFile)
	}
	// git ignores .index, so that a clone has none, and what its cards say of reviews does not count as reviewed here.
	_, err := os.Lstat(filepath.Join(dir, indexDir))
	older := err == nil // the program has been here
	if own {
		if err := s.checkBrought(); err != nil {
			return nil, fmt.Errorf("open knowledge base %s: %w", dir, err)
		}
	}
	if _, err := os.Lstat(s.opts.reviews); own && errors.Is(err, fs.ErrNotExist) {
		if err := s.unlessReadOnly(s.beginReviews(older)); err != nil {
			return nil, fmt.Errorf("open knowledge base %s: %w", dir, err)
		}
	}
	if err := s.unlessReadOnly(s.prepare()); err != nil {
		return nil, fmt.Errorf("open knowledge base: %w", err)
	}
	if s.opts.Watch { // before the files are read: nothing is missed
		s.watch.mark = s.folder.Mark()
	}
	err = s.load(context.Background(), nil)
	if err == nil {
		err = s.unlessReadOnly(errors.Join(s.detectHandReviews(), s.sweepMonths()))
	}
	if err != nil {
		return nil, fmt.Errorf("open knowledge base %s: %w", dir, err)
	}
	return s, nil
}

// unlessReadOnly returns an error of preparing the folder, except where the folder is there and this process may only
// read it: its cards are read then, and a change reports the reason.
func (s *Store) unlessReadOnly(err error) error {
	refused := errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
	if info, gone := os.Stat(s.dir); refused && gone == nil && info.IsDir() {
		return nil
	}
	return err
}

// sweepMonths removes the temporary files of crashed writers beside the cards.
func (s *Store) sweepMonths() error {
	if len(s.folder.Temp) == 0 {
		return nil
	}
	lock, err := durable.TryLock(s.lockPath())
	if errors.Is(err, durable.ErrLocked) {
		return nil // another process is writing; the next opening sweeps
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, path := range s.folder.Temp {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// checkBrought refuses a folder whose repository contains files that only the program writes: a
// clone would claim what was reviewed here.
func (s *Store) checkBrought() error {
	repo, err := history.Open(s.dir)
	if err != nil {
		return nil // none, or one that the next change reports
	}
	names, err := repo.Names()
	if err != nil {
		return nil
	}
	for _, name := range names {
		if reserved(name) {
			return fmt.Errorf("its git repository brings %s, which only this program writes; "+
				"remove it there and here with 'git rm -r %s'", name, name)
		}
	}
	return nil
}

// beginReviews creates the list of reviews. If older is set, an earlier version of the program,
// which had no list, used the folder: its reviewed cards were reviewed here.
func (s *Store) beginReviews(older bool) error {
	if err := durable.MakeDir(s.fs, s.dir); err != nil {
		return err
	}
	var lines []reviews.Line
	if older {
		paths, _, err := s.folder.Paths()
		if err != nil {
			return err
		}
		for _, path := range paths {
			st, err := s.folder.Read(path)
			if err == nil && (st.State == card.Reviewed || st.VerifiedAt != nil) {
				lines = append(lines, reviews.Line{
					V: reviews.Reviewed, Hash: st.Lesson.String(), At: s.opts.Now().UTC(), Topic: st.Topic,
				})
			}
		}
	}
	return reviews.Begin(s.fs, s.opts.reviews, lines)
}

// prepare creates the folders and removes temporary files of crashed writers.
func (s *Store) prepare() error {
	index := filepath.Join(s.dir, indexDir)
	if info, err := os.Stat(index); err != nil || !info.IsDir() {
		if err := durable.MakeDir(s.fs, index); err != nil {
			return err
		}
	}
	lock, err := durable.TryLock(s.lockPath())
	if errors.Is(err, durable.ErrLocked) {
		return nil // another process is writing; the next opening sweeps
	}
	if err != nil {
		return err
	}
	defer lock.Close()
	ignore := filepath.Join(s.dir, indexDir, ".gitignore")
	if _, err := os.Stat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := durable.WriteFile(s.fs, ignore, []byte("*\n")); err != nil {
			return err
		}
	}
	for _, d := range []string{indexDir, replacedDir} {
		if err := durable.RemoveTemp(filepath.Join(s.dir, d), durable.TempPrefix); err != nil {
			return err
		}
	}
	return s.completePending()
}
