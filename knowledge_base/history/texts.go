package history

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Messages is the path under which [Repo.Texts] passes commit messages.
const Messages = "(commit messages)"

// Texts passes each version of each file up to [MaxBlobBytes] that the branches and tags reach,
// once, and each commit message. A version with several paths is passed with one of them.
func (r *Repo) Texts(ctx context.Context, visit func(path string, data []byte)) error {
	r.reopen()
	refs, err := r.st.IterReferences()
	if err != nil {
		return fmt.Errorf("read the refs of %s: %w", r.git, err)
	}
	defer refs.Close()
	seen := make(map[plumbing.Hash]bool)
	var walk func(id plumbing.Hash, prefix string) error
	walk = func(id plumbing.Hash, prefix string) error {
		if seen[id] {
			return nil
		}
		seen[id] = true
		t, err := object.GetTree(r.st, id)
		if err != nil {
			return fmt.Errorf("read tree %s of %s: %w", id, r.git, err)
		}
		for _, e := range t.Entries {
			if e.Mode == filemode.Dir {
				if err := walk(e.Hash, prefix+e.Name+"/"); err != nil {
					return err
				}
				continue
			}
			size, err := r.st.EncodedObjectSize(e.Hash)
			if !e.Mode.IsFile() || seen[e.Hash] || err != nil || size > MaxBlobBytes {
				continue // a version that is absent or too long is not searched
			}
			seen[e.Hash] = true
			data, err := r.blob(e.Hash)
			if err != nil {
				return err
			}
			visit(prefix+e.Name, data)
		}
		return nil
	}
	return refs.ForEach(func(ref *plumbing.Reference) error {
		at := ref.Hash()
		if tag, err := object.GetTag(r.st, at); err == nil {
			visit(Messages, []byte(tag.Message))
			at = tag.Target
		}
		tip, err := object.GetCommit(r.st, at)
		if err != nil || ref.Type() != plumbing.HashReference {
			return nil // no commit: nothing of the cards' history
		}
		commits := object.NewCommitPreorderIter(tip, seen, nil)
		defer commits.Close()
		return commits.ForEach(func(c *object.Commit) error {
			if err := ctx.Err(); err != nil {
				return err
			}
			seen[c.Hash] = true
			visit(Messages, []byte(c.Message))
			return walk(c.TreeHash, "")
		})
	})
}
