package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// MaxRevisions bounds one log.
const MaxRevisions = 10_000

// Revision is one commit in which a file changed.
type Revision struct {
	ID      string    `json:"id"`
	At      time.Time `json:"at"`
	Author  Person    `json:"author"`
	Message string    `json:"message"` // its first line
	Path    string    `json:"path"`
	Gone    bool      `json:"gone,omitempty"` // the file was removed
	Diff    string    `json:"diff"`           // unified
}

// Log returns the commits in which a file changed whose path match names,
// newest first, at most [MaxRevisions]. A merge counts only where its file is
// none of its parents'.
func (r *Repo) Log(ctx context.Context, match func(path string) bool) ([]Revision, error) {
	r.reopen()
	_, at, err := r.head()
	if err != nil || at.IsZero() {
		return nil, err
	}
	tip, err := object.GetCommit(r.st, at)
	if err != nil {
		return nil, fmt.Errorf("read commit %s of %s: %w", at, r.git, err)
	}
	commits := object.NewCommitIterCTime(tip, nil, nil)
	defer commits.Close()
	var out []Revision
	for len(out) < MaxRevisions {
		c, err := commits.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the history of %s: %w", r.dir, err)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		revs, err := r.revisions(ctx, c, match)
		if err != nil {
			return nil, err
		}
		out = append(out, revs...)
	}
	return out, nil
}

// revisions returns what a commit did to the files that match.
func (r *Repo) revisions(ctx context.Context, c *object.Commit, match func(string) bool) ([]Revision, error) {
	now, err := r.tree(c.Hash)
	if err != nil {
		return nil, err
	}
	parents := c.ParentHashes
	if len(parents) == 0 {
		parents = []plumbing.Hash{plumbing.ZeroHash}
	}
	var found []Revision
	for i, p := range parents {
		was, err := r.tree(p)
		if err != nil {
			return nil, err
		}
		revs, err := r.compare(ctx, c, was, now, match)
		if err != nil || len(revs) == 0 {
			return nil, err // the same as in this parent: not this commit's doing
		}
		if i == 0 {
			found = revs
		}
	}
	return found, nil
}

func (r *Repo) compare(ctx context.Context, c *object.Commit, was, now *object.Tree, match func(string) bool) ([]Revision, error) {
	changes, err := object.DiffTreeWithOptions(ctx, was, now, nil)
	if err != nil {
		return nil, fmt.Errorf("compare commit %s with its parent: %w", c.Hash, err)
	}
	var out []Revision
	for _, ch := range changes {
		path := ch.To.Name
		if path == "" {
			path = ch.From.Name
		}
		if !match(path) {
			continue
		}
		patch, err := ch.PatchContext(ctx)
		if err != nil {
			return nil, fmt.Errorf("compare %s in commit %s: %w", path, c.Hash, err)
		}
		subject, _, _ := strings.Cut(c.Message, "\n")
		out = append(out, Revision{
			ID: c.Hash.String(), At: c.Author.When.UTC(), Author: Person{c.Author.Name, c.Author.Email},
			Message: subject, Path: path, Gone: ch.To.Name == "", Diff: patch.String(),
		})
	}
	return out, nil
}
