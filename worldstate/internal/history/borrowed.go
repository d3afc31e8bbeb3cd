package history

import (
	"context"
	"errors"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// errEnough ends a walk when a piece is complete.
var errEnough = errors.New("the piece is complete")

// CopyBorrowed copies at most about most bytes of the blobs that snapshots need and that only the
// lender of the store holds. more reports whether some may be left.
func CopyBorrowed(ctx context.Context, s *objects.Store, byName map[string]gitfmt.Hash, pack *objects.Writer, most int64) (more bool, err error) {
	commits, err := Log(ctx, s, byName, func(string) bool { return true })
	if err != nil {
		return false, err
	}
	seen, copied := make(map[gitfmt.Hash]bool), int64(0)
	v := Visitor{
		Enter: func(h gitfmt.Hash) bool {
			defer func() { seen[h] = true }()
			return !seen[h]
		},
		Blob: func(h gitfmt.Hash, path string) error {
			if s.Owns(h) || pack.Holds(h) {
				return nil
			}
			n, err := s.Copy(pack, gitfmt.BlobObject, h, path)
			if copied += n; err == nil && copied >= most {
				err = errEnough
			}
			return err
		},
	}
	for _, c := range commits {
		if c.Missing != nil {
			continue // its blobs are unknown
		}
		if err := Walk(ctx, s, c.Tree, v); errors.Is(err, errEnough) {
			return true, nil
		} else if err != nil {
			return false, err
		}
	}
	return false, nil
}
