package knowledgebase

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/internal/disk"
	"anamnesis/knowledge_base/internal/folder"
	"anamnesis/knowledge_base/internal/intent"
	"anamnesis/knowledge_base/internal/secrets"
)

// maxPushes is how often a sync fetches again because the remote went on
// between its fetch and its push.
const maxPushes = 3

// ErrBothChanged is returned by [Store.Sync] for a file that is no card and
// was changed on both sides: merging it is a user's.
var ErrBothChanged = errors.New("changed on both sides, and no card: merge it with git")

// Synced is what a sync did.
type Synced struct {
	Taken     []string `json:"taken"`     // paths that came from the remote
	Conflicts []string `json:"conflicts"` // ids of cards changed on both sides; the other version stands beside, in review
	LeftOut   []string `json:"left_out"`  // paths of files above [history.MaxBlobBytes], which did not arrive
	Drafts    []string `json:"drafts"`    // ids of cards that were reviewed here and that the remote changed
	Pushed    bool     `json:"pushed"`
}

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
	return strings.HasPrefix(path, ".") || strings.Contains(path, "/.") || !filepath.IsLocal(filepath.FromSlash(path)) || strings.Contains(path, "\\") ||
		slices.ContainsFunc([]string{usageFile, reviewsFile, ownReviewsFile}, func(name string) bool { return strings.EqualFold(first, name) })
}

// Sync takes in what a git remote has, gives it what is here, and loses
// neither: a card changed on both sides stays as it is here, and the remote's
// version becomes a draft beside it that contradicts it. remote is a name or
// an address, as for git.
func (s *Store) Sync(ctx context.Context, remote string) (*Synced, error) {
	out := &Synced{Taken: []string{}, Conflicts: []string{}, LeftOut: []string{}, Drafts: []string{}}
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
	release, err := disk.Lock(s.lockPath(), true)
	if err != nil {
		return err
	}
	defer release()
	if err := s.settle(); err != nil {
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
		if err := s.takeIn(ctx, theirs, out); err != nil {
			return err
		}
	}
	head, err := s.repo.Head()
	if err != nil || head == "" || head == theirs {
		return err
	}
	if err := s.repo.Push(ctx, remote); err != nil {
		return err
	}
	out.Pushed = true
	return nil
}

// takeIn merges a fetched commit.
func (s *Store) takeIn(ctx context.Context, theirs string, out *Synced) error {
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
		if err := s.mergeSide(side, &in, out); err != nil {
			return err
		}
	}
	if err := s.noteArrived(&in); err != nil {
		return fmt.Errorf("note what arrives: %w", err)
	}
	in.Message = fmt.Sprintf("Take in %d changes from elsewhere", len(in.Files))
	if n := len(out.Conflicts); n > 0 {
		in.Message += fmt.Sprintf("\n\nChanged on both sides, to be reviewed: %s", strings.Join(out.Conflicts, " "))
	}
	if err := in.Write(s.opts.fs); err != nil {
		return err
	}
	if err := s.finish(&in); err != nil {
		return err
	}
	if err := s.commitIntent(&in); err != nil {
		return err
	}
	return s.load(ctx, nil)
}

// redactSide takes the secrets out of what a remote brings. The commits that it
// brings hold them still.
func (s *Store) redactSide(side *history.Side, in *intent.Intent) {
	if s.opts.Redact == nil || side.Theirs == nil || side.OursBlob == side.TheirsBlob {
		return
	}
	b := secrets.NewScrubber(s.opts.Redact)
	b.Blob(side.Path, side.Theirs)
	to := b.Path(side.Path)
	clean, kinds := b.Blob(side.Path, side.Theirs)
	if len(kinds) == 0 && to == side.Path {
		return
	}
	s.notice("%s: the remote brings a secret (%s), replaced in the file; the remote's commits hold it: rotate it, and run 'anamnesis kb redact'", to, strings.Join(kinds, ", "))
	in.Forward, side.Theirs = false, clean
	if to != side.Path {
		*side = history.Side{Path: to, Theirs: clean, TheirsBlob: side.TheirsBlob}
	}
}

// mergeSide decides about one file that changed there.
func (s *Store) mergeSide(side history.Side, in *intent.Intent, out *Synced) error {
	same := func(a, b []byte) bool { return (a == nil) == (b == nil) && string(a) == string(b) }
	write := func(path string, before, data []byte) {
		f := intent.File{Path: path, Data: string(data), Gone: data == nil}
		if before != nil {
			f.Before = intent.Sum(before)
		}
		in.Files = append(in.Files, f)
	}
	switch {
	case side.OursBlob == side.TheirsBlob:
	case side.TheirsLeft:
		out.LeftOut = append(out.LeftOut, side.Path)
		if side.OursBlob != "" || side.BaseBlob != "" { // what is here stays
			in.Forward = false
			return nil
		}
		in.Files = append(in.Files, intent.File{Path: side.Path, Blob: side.TheirsBlob})
	case side.OursLeft && side.OursBlob == side.BaseBlob:
		write(side.Path, nil, side.Theirs)
		out.Taken = append(out.Taken, side.Path)
	case side.OursLeft: // changed here: it stays
	case same(side.Ours, side.Theirs):
	case same(side.Ours, side.Base):
		s.tellDraft(side, out)
		write(side.Path, side.Ours, side.Theirs)
		out.Taken = append(out.Taken, side.Path)
	case !folder.IsCardFile(side.Path):
		return fmt.Errorf("%s: %w", side.Path, ErrBothChanged)
	case side.Theirs == nil: // changed here, removed there: it stays
	case side.Ours == nil: // removed here, changed there: it comes back
		write(side.Path, nil, side.Theirs)
		out.Taken = append(out.Taken, side.Path)
	default:
		return s.mergeCard(side, write, out)
	}
	return nil
}

// mergeCard has both versions of a card stand side by side. Where they say
// the same lesson, ours stays if it was reviewed here, else the one verified last.
func (s *Store) mergeCard(side history.Side, write func(path string, before, data []byte), out *Synced) error {
	theirs, err := card.Parse(side.Theirs)
	ours, oursErr := card.Parse(side.Ours)
	if err != nil || oursErr != nil {
		// Not to be read as a card: kept beside as it is, and listed as such.
		path := strings.TrimSuffix(side.Path, ".md") + "-theirs-" + intent.Sum(side.Theirs)[:8] + ".md"
		write(path, nil, side.Theirs)
		out.Conflicts = append(out.Conflicts, side.Path)
		return nil
	}
	if theirs.Hash() == ours.Hash() {
		if !s.trusted[ours.Hash()] && theirs.VerifiedAt != nil && (ours.VerifiedAt == nil || theirs.VerifiedAt.After(*ours.VerifiedAt)) {
			write(side.Path, side.Ours, side.Theirs)
			out.Taken = append(out.Taken, side.Path)
		}
		return nil
	}
	twin := theirs.Clone()
	twin.ID = card.NewID("sync", ours.ID, theirs.Hash())
	twin.State, twin.VerifiedAt = card.Draft, nil
	if !slices.Contains(twin.Contradicts, ours.ID) {
		twin.Contradicts = append(twin.Contradicts, ours.ID)
	}
	if err := twin.Validate(); err != nil {
		return fmt.Errorf("%s: the remote's version: %w", side.Path, err)
	}
	write(filepath.ToSlash(filepath.Join(filepath.Dir(side.Path), folder.FileName(twin.Topic, twin.ID))), nil, twin.Markdown())
	out.Conflicts = append(out.Conflicts, ours.ID)
	return nil
}

// tellDraft notes a card that counted as reviewed here and that the remote's
// version makes something else.
func (s *Store) tellDraft(side history.Side, out *Synced) {
	ours, err := card.Parse(side.Ours)
	if err != nil || ours.State != card.Reviewed || !s.trusted[ours.Hash()] {
		return
	}
	theirs, err := card.Parse(side.Theirs)
	if err != nil || theirs.Hash() != ours.Hash() || theirs.State != card.Reviewed {
		out.Drafts = append(out.Drafts, ours.ID)
	}
}
