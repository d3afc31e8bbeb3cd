package worldstate

import (
	"context"
	"fmt"
	"io"

	"anamnesis/worldstate/internal/diff"
	"anamnesis/worldstate/internal/tree"
)

// The types of Diff, Renames and Patch.
type (
	// A Change is one path that differs. Directories end in a slash. They are listed only if an
	// empty one came or went, or if only the mode changed.
	Change = diff.Change
	// A Side is one end of a change.
	Side = diff.Side
	// ChangeKind is how a path differs.
	ChangeKind = diff.ChangeKind
)

// The kinds of changes.
const (
	Added    = diff.Added
	Deleted  = diff.Deleted
	Modified = diff.Modified // other content
	Mode     = diff.Mode     // the same content, other permissions
	Type     = diff.Type     // file, link or directory became another of these
	Renamed  = diff.Renamed  // from another path; only Renames makes one
)

// DefaultSimilarityPercent is what two files must have in common to count as a rename, as in git.
const DefaultSimilarityPercent = diff.DefaultSimilarityPercent

// Diff returns the paths in which two snapshots differ, sorted. a may be "" for an empty world.
func (w *World) Diff(ctx context.Context, a, b ID) ([]Change, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return nil, err
	}
	defer end()
	var lists [2]*tree.Listing
	for i, id := range []ID{a, b} {
		lists[i] = tree.Empty()
		if id == "" {
			continue
		}
		if lists[i], err = w.listing(id); err != nil {
			return nil, fmt.Errorf("diff: %w", err)
		}
	}
	return diff.Between(lists[0], lists[1]), nil
}

// Patch writes changes, as Diff or Renames returned them, as a unified diff that `git apply`
// accepts. Files that are not text, or over 1 MiB, are only named; directories are left out.
// Names are quoted as git quotes them; content is not escaped for a terminal.
func (w *World) Patch(ctx context.Context, out io.Writer, changes []Change) error {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return err
	}
	defer end()
	return diff.Patch(ctx, w.objects, out, changes)
}

// Renames pairs deletions with additions: first files and links of the same content, then files
// that share at least similar percent of their bytes, counted in lines of at most 64 bytes as
// git does. A pair becomes one Change of kind Renamed at the new path. Each path is in one pair
// at most; the most similar are paired first, on equal similarity those of one name. uncompared
// counts the paths over the limit of candidates, or too large, that were matched only by
// content hash.
func (w *World) Renames(ctx context.Context, changes []Change, similar int) (out []Change, uncompared int, err error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return nil, 0, err
	}
	defer end()
	return diff.Renames(ctx, w.objects, changes, similar)
}
