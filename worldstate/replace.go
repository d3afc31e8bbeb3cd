package worldstate

import (
	"context"
	"fmt"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// Replace stores a snapshot that is id with other content in some of its files. No ref names it.
func (w *World) Replace(ctx context.Context, id ID, content map[string][]byte) (ID, error) {
	end, err := w.begin(ctx, changing)
	if err != nil {
		return "", err
	}
	defer end()
	was, err := w.byID(id)
	if err != nil {
		return "", err
	}
	list, err := w.tree(was.Tree)
	if err != nil {
		return "", err
	}
	pack := objects.NewWriter(w.objects.PackDir(), w.opts.Hook, &w.packs)
	defer pack.Abort()
	var entries []tree.Entry
	for e := range list.All() {
		made := *e
		if data, replaced := content[e.Path]; replaced {
			made.Hash = gitfmt.HashObject(gitfmt.BlobObject, data)
			if err := pack.Add(made.Hash, gitfmt.BlobObject, data); err != nil {
				return "", fmt.Errorf("replace %q: %w", e.Path, err)
			}
		}
		entries = append(entries, made)
	}
	// The copy keeps was's facts about the world (skips, rules, secrets). It is no step, and so has no step's name.
	c := *was
	c.Parents, c.Time, c.Step, c.Trailers, c.Message = []gitfmt.Hash{was.Id}, w.opts.Now(), "", nil, "merged"
	if c.Tree, err = w.storeTrees(tree.NewListing(entries), pack); err != nil {
		return "", fmt.Errorf("replace: %w", err)
	}
	if err := addCommit(pack, &c); err != nil {
		return "", fmt.Errorf("replace: %w", err)
	}
	return ID(c.Id.String()), w.objects.Publish(pack, w.opts.SizeLimitBytes)
}
