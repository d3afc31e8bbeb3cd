package history

import (
	"context"
	"errors"
	"fmt"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// Visitor is what a walk of a git tree calls.
type Visitor struct {
	Enter  func(h gitfmt.Hash) bool                            // whether a tree is to be read
	Tree   func(h gitfmt.Hash, path string)                    // a tree that was read; may be nil
	Blob   func(h gitfmt.Hash, path string) error              // a file or a link
	Failed func(h gitfmt.Hash, path string, cause error) error // a tree that cannot be read; nil: any ends the walk
}

// Walk visits a tree and all beneath it, parents first.
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
	items, err := readTree(s, h, path, depth)
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

func readTree(s *objects.Store, h gitfmt.Hash, path string, depth int) ([]gitfmt.TreeItem, error) {
	data, err := s.Read(h, gitfmt.TreeObject, path)
	if err != nil {
		return nil, err
	}
	items, err := gitfmt.DecodeTree(data)
	if err == nil && depth > gitfmt.MaxTreeDepth {
		err = errors.New("nested too deep")
	}
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w: %w", h, gitfmt.ErrCorrupt, err)
	}
	return items, nil
}
