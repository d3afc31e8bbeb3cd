package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"

	"anamnesis/opstream/durable"
)

// fetchedRefs holds a remote's branch between fetching and merging.
const fetchedRefs = "refs/anamnesis/fetched/"

var (
	// ErrNoGit is returned where a remote is to be reached and there is no git
	// program, which knows the user's keys and passwords.
	ErrNoGit = errors.New("the git program is needed to reach a remote")
	// ErrRejected is returned by Push when the remote has new commits.
	ErrRejected = errors.New("the remote has new commits")
	// ErrReplaced is returned by Fetch for a history with commits that a rewrite
	// replaced here.
	ErrReplaced = errors.New("the remote has the history that was replaced here")
)

// Fetch brings the remote's branch of the current name here and returns its
// commit; "" where the remote has no such branch. remote is a name or an
// address, as for git. A remote that sends a file above [MaxBlobBytes], or more than
// one fetch accepts, is an [ErrTooMuch]; nothing of it is stored.
func (r *Repo) Fetch(ctx context.Context, remote string) (string, error) {
	branch, _, err := r.head()
	if err != nil {
		return "", err
	}
	scratch, err := r.newScratch(remote)
	if err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	defer scratch.remove()
	list, err := scratch.run(ctx, nil, "ls-remote", "in", branch.String())
	if err != nil {
		return "", err
	}
	if !strings.Contains(list, "\t"+branch.String()+"\n") {
		return "", nil
	}
	theirs, err := scratch.fetch(ctx, branch.String())
	if err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	r.reopen()
	local := filepath.Join(r.git, filepath.FromSlash(fetchedRefs+branch.Short()))
	if err := os.MkdirAll(filepath.Dir(local), durable.DirMode); err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	if err := replace(durable.OS{}, r.git, local, []byte(theirs+"\n")); err != nil {
		return "", fmt.Errorf("fetch: %w", err)
	}
	return theirs, nil
}

// Push returns the current branch to the remote, [ErrRejected] when that has
// gone on.
func (r *Repo) Push(ctx context.Context, remote string) error {
	branch, head, err := r.head()
	if err != nil {
		return err
	}
	scratch, err := r.newScratch(remote)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	defer scratch.remove()
	_, err = scratch.run(ctx, nil, "push", "--quiet", "in", head.String()+":"+branch.String())
	if err != nil && (strings.Contains(err.Error(), "[rejected]") || strings.Contains(err.Error(), "fetch first")) {
		return fmt.Errorf("%w: %w", ErrRejected, err)
	}
	return err
}

// Side is one file on the three sides of a merge; nil bytes: not there.
type Side struct {
	Path               string
	Base, Ours, Theirs []byte
}

// Merge is how a fetched commit relates to the current one.
type Merge struct {
	UpToDate bool   // the remote has nothing that is missing here
	Forward  bool   // nothing local is missing at the remote
	Changed  []Side // the files in which theirs differs from the base
}

// Compare returns what taking theirs in would bring.
func (r *Repo) Compare(ctx context.Context, theirs string) (*Merge, error) {
	r.reopen()
	_, head, err := r.head()
	if err != nil {
		return nil, err
	}
	t, err := object.GetCommit(r.st, plumbing.NewHash(theirs))
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrNoRevision, theirs)
	}
	base := plumbing.ZeroHash
	if !head.IsZero() {
		h, err := object.GetCommit(r.st, head)
		if err != nil {
			return nil, fmt.Errorf("read commit %s: %w", head, err)
		}
		bases, err := h.MergeBase(t)
		if err != nil {
			return nil, fmt.Errorf("find what %s and %s have in common: %w", head, theirs, err)
		}
		if len(bases) > 0 {
			base = bases[0].Hash
		}
	}
	m := &Merge{UpToDate: base == t.Hash, Forward: base == head}
	if m.UpToDate {
		return m, nil
	}
	m.Changed, err = r.sides(ctx, base, head, t.Hash)
	return m, err
}

// sides lists the files in which theirs differs from the base.
func (r *Repo) sides(ctx context.Context, base, head, theirs plumbing.Hash) ([]Side, error) {
	var trees [3]*object.Tree
	for i, h := range []plumbing.Hash{base, head, theirs} {
		var err error
		if trees[i], err = r.tree(h); err != nil {
			return nil, err
		}
	}
	changes, err := object.DiffTreeWithOptions(ctx, trees[0], trees[2], nil)
	if err != nil {
		return nil, fmt.Errorf("compare with %s: %w", theirs, err)
	}
	var out []Side
	for _, ch := range changes {
		s := Side{Path: ch.To.Name}
		if s.Path == "" {
			s.Path = ch.From.Name
		}
		for i, to := range []*[]byte{&s.Base, &s.Ours, &s.Theirs} {
			e, err := trees[i].FindEntry(s.Path)
			if err != nil {
				continue
			}
			if e.Mode != filemode.Regular {
				return nil, fmt.Errorf("%s is no plain file on one side; merge it with git", s.Path)
			}
			*to, err = r.blob(e.Hash)
			if i < 2 && errors.Is(err, plumbing.ErrObjectNotFound) {
				continue // earlier versions left files above [MaxBlobBytes] at the remote
			}
			if err != nil {
				return nil, err
			}
			if *to == nil {
				*to = []byte{}
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// Forward moves the current branch to theirs, which it is an ancestor of.
// files are as in [Commit].
func (r *Repo) Forward(theirs string, files map[string][]byte) error {
	r.reopen()
	if err := r.Ready(); err != nil {
		return err
	}
	release, err := r.lock()
	if err != nil {
		return err
	}
	defer release()
	branch, head, err := r.head()
	if err != nil || head == plumbing.NewHash(theirs) {
		return err
	}
	blobs := make(map[string]plumbing.Hash, len(files))
	for path, data := range files {
		blobs[path] = plumbing.ZeroHash
		if data != nil {
			blobs[path] = plumbing.ComputeHash(plumbing.BlobObject, data)
		}
	}
	if err := r.updateIndex(blobs); err != nil {
		return err
	}
	return r.moveBranch(branch, head, plumbing.NewHash(theirs))
}
