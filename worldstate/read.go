package worldstate

import (
	"context"
	"fmt"
	"io"
	"path"
	"slices"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/diff"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// An Item is one path of a snapshot.
type Item struct {
	Path string `json:"path"` // "" is the world itself
	Side
	SizeBytes int64 `json:"size"` // of a file's or link's bytes; 0 for a directory
	// Secret: as that of a Change. Blob is empty, because a short secret can be found from its hash.
	Secret bool `json:"secret,omitempty"`
}

// List returns what a snapshot holds at a path: the entries of a directory, sorted, or the item
// itself for a file or link. path is relative to the world; "" or "." is the world itself.
// Errors: ErrUnknown, ErrNoPath, *MissingObjectError.
func (w *World) List(ctx context.Context, id ID, path string) ([]Item, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return nil, err
	}
	defer end()
	list, clean, err := w.lookup(id, path)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", gitfmt.Short(id), err)
	}
	out := []Item{}
	if e := list.Find(clean); e != nil && !e.IsDir() {
		item, err := w.item(id, e)
		return append(out, item), err
	}
	for e := range list.All() {
		if fsys.Dir(e.Path) != clean {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		item, err := w.item(id, e)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", gitfmt.Short(id), err)
		}
		out = append(out, item)
	}
	return out, nil
}

// Stat returns the item at one path of a snapshot, also for a directory. Errors as List.
func (w *World) Stat(ctx context.Context, id ID, path string) (Item, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return Item{}, err
	}
	defer end()
	list, clean, err := w.lookup(id, path)
	if err == nil && clean == "" {
		return Item{Side: Side{Type: "dir"}}, nil
	}
	var item Item
	if err == nil {
		item, err = w.item(id, list.Find(clean))
	}
	if err != nil {
		return Item{}, fmt.Errorf("stat in %s: %w", gitfmt.Short(id), err)
	}
	return item, nil
}

// Content writes a file's bytes, or a link's target, to out, after it has read and verified
// them once. The error for a directory is ErrNoPath; other errors as List.
func (w *World) Content(ctx context.Context, id ID, path string, out io.Writer) error {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return err
	}
	defer end()
	list, clean, err := w.lookup(id, path)
	if err == nil {
		if e := list.Find(clean); e == nil || e.IsDir() {
			err = fmt.Errorf("%w: %q is a directory", ErrNoPath, path)
		} else if err = w.refuseSecret(id, clean); err != nil {
			// Nothing is written.
		} else if err = w.objects.Check(e.Hash, gitfmt.BlobObject, clean); err == nil {
			_, err = w.objects.CopyTo(e.Hash, gitfmt.BlobObject, clean, out)
		}
	}
	if err != nil {
		return fmt.Errorf("read from %s: %w", gitfmt.Short(id), err)
	}
	return nil
}

// refuseSecret returns an error for a secret file, whose content is not shown.
func (w *World) refuseSecret(id ID, path string) error {
	c, err := w.byID(id)
	if err == nil && slices.Contains(c.Secrets, path) {
		err = fmt.Errorf("%w: %q is an ignored file that snapshots hold for restores only; restore it to read it",
			ErrRefused, path)
	}
	return err
}

// lookup loads a snapshot's listing and cleans a path that must be in it.
func (w *World) lookup(id ID, name string) (*tree.Listing, string, error) {
	list, err := w.listing(id)
	if err != nil {
		return nil, "", err
	}
	clean := path.Clean(name)
	if clean == "." || clean == "/" {
		return list, "", nil
	}
	if list.Find(clean) == nil {
		return nil, "", fmt.Errorf("%w: %q", ErrNoPath, name)
	}
	return list, clean, nil
}

// item returns the item of an entry of a snapshot. It reads the object's header for the size.
func (w *World) item(id ID, e *tree.Entry) (Item, error) {
	it := Item{Path: e.Path, Side: *diff.SideOf(e.State)}
	if e.IsDir() {
		return it, nil
	}
	_, size, r, err := w.objects.Open(e.Hash)
	if err != nil {
		return it, &MissingObjectError{Object: e.Hash.String(), Path: e.Path, Err: err}
	}
	r.Close()
	it.SizeBytes = size
	c, err := w.byID(id)
	if err != nil {
		return it, err
	}
	if it.Secret = slices.Contains(c.Secrets, e.Path); it.Secret {
		it.Blob = ""
	}
	return it, nil
}

// Describe returns one snapshot as Log lists it.
func (w *World) Describe(ctx context.Context, id ID) (Commit, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return Commit{}, err
	}
	defer end()
	c, err := w.byID(id)
	if err != nil {
		return Commit{}, err
	}
	byName, err := w.refs.All()
	if err != nil {
		return Commit{}, err
	}
	return w.listed(c, w.stepNames(byName)[c.Id], w.headOf(byName)), nil
}

type plainItem Item

// MarshalJSON adds path_bytes where the path is not UTF-8.
func (i Item) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainItem)(&i)) }

// Paths of more components or bytes are left out of a snapshot.
const (
	MaxDepth     = tree.MaxDepth
	MaxPathBytes = tree.MaxPathBytes
)

// Fits reports whether a snapshot can hold a file at a path, which must be relative to the
// world, slash-separated and clean.
func Fits(path string) bool { return tree.Fits(path) }

// RepositoryName names the project that dir belongs to, with the same result on other machines.
func RepositoryName(dir string) string { return usergit.RepositoryName(dir) }

// Identity returns the top of the repository that dir belongs to and what identifies it, at no cost: "remote:" with its
// RepositoryName, if its remote is on a host, and "clone:" with its place; without a repository "dir:" with dir.
// first reads the history for the first commit, and returns "" if there is none, it is not near, or the history is
// shallow.
func Identity(dir string) (top string, ids []string, first func() string) {
	return usergit.Identity(dir)
}

// GitAround returns, for the git repository that contains dir, its git directory, the one that
// all its worktrees share, and the ignore rules from outside dir that apply in it. Without a
// repository all are empty.
func GitAround(dir string) (gitDir, common string, outer ignore.Chain) { return usergit.Around(dir) }

// The state of a user's repository, and its reader.
type (
	GitState  = usergit.State
	GitReader = usergit.Reader
	// GitCommand is a git command that runs nothing which the repository names.
	GitCommand = usergit.Command
)

// The types of Diff, Renames and Patch.
type (
	// Change is one Path that differs, of a Kind: Old is nil when it was added, New when it was deleted.
	// From is the previous path of a renamed file and Similarity the share of its bytes that it kept, in
	// percent. Of a Secret file the content is not shown. Directories end in a slash; they are listed
	// only if an empty one came or went, or if only the mode changed.
	Change = diff.Change
	// Side is one end of a change: Type is file, link or dir, Mode four octal digits (none for a link),
	// and Blob the content's git id (none for a directory).
	Side = diff.Side
	// ChangeKind is how a path differs between two snapshots.
	ChangeKind = diff.ChangeKind
)

// The kinds of changes.
const (
	Added    = diff.Added
	Deleted  = diff.Deleted
	Modified = diff.Modified
	Mode     = diff.Mode
	Type     = diff.Type
	Renamed  = diff.Renamed
)

// Diff returns the paths in which two snapshots differ, sorted. a may be "" for an empty world.
func (w *World) Diff(ctx context.Context, a, b ID) ([]Change, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return nil, err
	}
	defer end()
	var lists [2]*tree.Listing
	secrets := make(map[string]bool)
	for i, id := range []ID{a, b} {
		lists[i] = tree.Empty()
		if id == "" {
			continue
		}
		if lists[i], err = w.listing(id); err != nil {
			return nil, fmt.Errorf("diff: %w", err)
		}
		c, err := w.byID(id)
		if err != nil {
			return nil, fmt.Errorf("diff: %w", err)
		}
		for _, path := range c.Secrets {
			secrets[path] = true
		}
	}
	changes := diff.Between(lists[0], lists[1])
	for i := range changes {
		c := &changes[i]
		if c.Secret = secrets[c.Path]; c.Secret { // a short secret can be found from its hash
			for _, side := range []*Side{c.Old, c.New} {
				if side != nil {
					side.Blob = ""
				}
			}
		}
	}
	return changes, nil
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
// that share at least half of their bytes, counted in lines of at most 64 bytes as
// git does. A pair becomes one Change of kind Renamed at the new path. Each path is in one pair
// at most; the most similar are paired first, on equal similarity those of one name. Of more than
// a thousand files, and of large ones, only those of the same content are paired.
func (w *World) Renames(ctx context.Context, changes []Change) ([]Change, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return nil, err
	}
	defer end()
	return diff.Renames(ctx, w.objects, changes)
}
