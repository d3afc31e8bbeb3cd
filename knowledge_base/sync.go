package knowledgebase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/secrets"
	"anamnesis/opstream/durable"
)

// maxPushes bounds the attempts of a sync whose push is rejected because the remote has changed
// since the fetch.
const maxPushes = 3

// ErrReserved is returned by [Store.Sync] for a remote that brings a file that
// only this program writes.
var ErrReserved = errors.New("only this program writes that file: nothing was taken in")

// reserved reports whether a path within the folder is not a remote's to bring:
// what the program keeps there, and what git or another program would act on.
// Some file systems do not tell cases apart.
func reserved(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	if path == ".gitignore" || path == ".gitattributes" {
		return false
	}
	own := []string{usageFile, reviewsFile, ownReviewsFile}
	return strings.HasPrefix(path, ".") || strings.Contains(path, "/.") || strings.Contains(path, "\\") ||
		!filepath.IsLocal(filepath.FromSlash(path)) ||
		slices.ContainsFunc(own, func(name string) bool { return strings.EqualFold(first, name) })
}

// Sync merges the cards of a git remote and pushes the result. A card changed on both
// sides, or reviewed here, keeps the local version, and the remote's version becomes a draft that
// contradicts it, under an id of its own. remote is a name or
// an address, as for git.
func (s *Store) Sync(ctx context.Context, remote string) (*Synced, error) {
	out := &Synced{Paths: []string{}, Conflicts: []string{}, Drafts: []string{}, Renamed: []Rename{}}
	for try := 1; ; try++ {
		err := s.syncOnce(ctx, remote, out)
		if err == nil {
			return out, nil
		}
		if !errors.Is(err, history.ErrRejected) || try == maxPushes {
			return nil, fmt.Errorf("sync with %s: %w", remote, err)
		}
	}
}

// syncOnce fetches, merges and pushes under both locks.
func (s *Store) syncOnce(ctx context.Context, remote string, out *Synced) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	if s.opts.NoHistory {
		return errors.New("the cards lie in a project's repository; git pull and push there")
	}
	lock, err := durable.Lock(s.lockPath())
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := s.prepareChange(); err != nil {
		return err
	}
	if s.histErr != nil {
		return s.histErr
	}
	theirs, err := s.repo.Fetch(ctx, remote)
	if err != nil {
		return err
	}
	if theirs != "" {
		if err := s.mergeCommit(ctx, theirs, out); err != nil {
			return err
		}
	}
	head, err := s.repo.Head()
	if err != nil || head == "" || head == theirs { // the remote has all that is here
		return err
	}
	if err := s.repo.Push(ctx, remote); err != nil {
		return err
	}
	out.Pushed = true
	return nil
}

func (s *Store) mergeCommit(ctx context.Context, theirs string, out *Synced) error {
	m, err := s.repo.Compare(ctx, theirs)
	if err != nil || m.UpToDate {
		return err
	}
	in := intent.New(s.folder.Index, s.opts.Now())
	in.Author, in.Theirs, in.Forward = s.person(), theirs, m.Forward
	for _, side := range m.Changed {
		if reserved(side.Path) {
			return fmt.Errorf("%s: %w", side.Path, ErrReserved)
		}
		s.redactSide(&side, &in)
		if err := s.mergeFile(side, &in, out); err != nil {
			return err
		}
	}
	// Before the files: a reviewed card that is not listed as arrived counts as reviewed here, by hand.
	if err := s.recordArrived(&in); err != nil {
		return fmt.Errorf("note what arrives: %w", err)
	}
	in.Message = fmt.Sprintf("Take in %d changes from elsewhere", len(in.Files))
	if n := len(out.Conflicts); n > 0 {
		in.Message += fmt.Sprintf("\n\nChanged on both sides, to be reviewed: %s", strings.Join(out.Conflicts, " "))
	}
	if err := in.Write(s.fs); err != nil {
		return err
	}
	if err := s.replay(&in); err != nil {
		return err
	}
	if err := s.commitIntent(&in); err != nil {
		return err
	}
	return s.load(ctx, nil)
}

// redactSide replaces the secrets in a file that a remote brings. The remote's commits still hold
// them.
func (s *Store) redactSide(side *history.Side, in *intent.Intent) {
	if s.opts.Redact == nil || side.Theirs == nil || bytes.Equal(side.Ours, side.Theirs) {
		return
	}
	b := secrets.NewScrubber(s.opts.Redact)
	b.Blob(side.Path, side.Theirs) // so that Path finds the file's secrets in its name
	to := b.Path(side.Path)
	clean, kinds := b.Blob(side.Path, side.Theirs)
	if len(kinds) == 0 && to == side.Path {
		return
	}
	s.Notice("%s: the remote brings a secret (%s), replaced in the file; the remote's commits hold it: rotate it, "+
		"and redact the folder", to, strings.Join(kinds, ", "))
	// The file written here differs from the one in the remote's commit, so the branch cannot only move to that.
	in.Forward, side.Theirs = false, clean
	if to != side.Path {
		*side = history.Side{Path: to, Theirs: clean}
	}
}
