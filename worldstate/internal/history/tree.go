package history

import (
	"context"
	"fmt"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// Visitor holds the callbacks of a walk of a git tree.
type Visitor struct {
	Enter  func(h gitfmt.Hash) bool                            // reports whether to read the tree
	Tree   func(h gitfmt.Hash, path string)                    // called for each tree that was read; may be nil
	Blob   func(h gitfmt.Hash, path string) error              // called for each file and link
	Failed func(h gitfmt.Hash, path string, cause error) error // called for a tree that cannot be read; if nil, such a tree ends the walk
}

// Walk visits a tree and everything beneath it, parents first.
func Walk(ctx context.Context, s *objects.Store, h gitfmt.Hash, v Visitor) error {
	return v.walk(ctx, s, h, "", 0)
}

func (v *Visitor) walk(ctx context.Context, s *objects.Store, h gitfmt.Hash, path string, depth int) error {
	if !v.Enter(h) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	items, err := s.Tree(h, path)
	if err == nil && depth > gitfmt.MaxTreeDepth {
		err = fmt.Errorf("tree %s: %w: nested too deep", h, gitfmt.ErrCorrupt)
	}
	if err != nil && v.Failed != nil {
		return v.Failed(h, path, err)
	}
	if err != nil {
		return err
	}
	if v.Tree != nil {
		v.Tree(h, path)
	}
	for _, it := range items {
		p := fsys.Join(path, it.Name)
		switch it.Mode {
		case "40000":
			err = v.walk(ctx, s, it.Hash, p, depth+1)
		case gitfmt.GitlinkMode:
		default:
			err = v.Blob(it.Hash, p)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
