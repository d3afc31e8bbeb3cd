package restore

import (
	"context"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
)

// Action changes one path from one state to another; either may be absent.
type Action struct {
	Path          string
	Before, After tree.State
}

// BeforeOf and AfterOf return the two states of an action.
func BeforeOf(a Action) tree.State { return a.Before }
func AfterOf(a Action) tree.State  { return a.After }

// ProbeAll checks that the store can read one end of every action.
func ProbeAll(ctx context.Context, s *objects.Store, actions []Action, end func(a Action) tree.State) error {
	return atOnce(len(actions), func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		st := end(actions[i])
		if st.Absent() || st.IsDir() {
			return nil
		}
		return s.Probe(st.Hash, gitfmt.BlobObject, actions[i].Path)
	})
}

// reversed returns the actions with their states exchanged.
func reversed(actions []Action) []Action {
	out := make([]Action, len(actions))
	for i, a := range actions {
		out[i] = Action{a.Path, a.After, a.Before}
	}
	return out
}

// WithReadOnlyDirs adds an action without a change for every read-only directory that the restore must
// make writable for a time, so that the journal holds its mode for a recovery. now is the present world.
func WithReadOnlyDirs(actions []Action, now *tree.Listing) []Action {
	planned := make(map[string]bool, len(actions))
	for _, a := range actions {
		planned[a.Path] = true
	}
	out := slices.Clone(actions)
	for _, a := range actions {
		d := fsys.Dir(a.Path)
		if s := now.At(d); s.IsDir() && s.Perm&0o300 != 0o300 && !planned[d] {
			planned[d] = true
			out = append(out, Action{Path: d, Before: s, After: s})
		}
	}
	slices.SortFunc(out, func(a, b Action) int { return strings.Compare(a.Path, b.Path) })
	return out
}

// FilesRemoved reports whether the files of an interrupted restore were removed since, as by rm -rf of
// the directory: no file of either end exists, and something is missing that the restore never
// removes. A file that cannot be looked up counts as existing.
func FilesRemoved(root int, source *tree.Listing, actions []Action) bool {
	removed := make(map[string]bool) // at some time during the restore
	for _, a := range actions {
		removed[a.Path] = a.After.Absent() || a.Before.IsDir() != a.After.IsDir()
		if !a.After.Absent() && !a.After.IsDir() && exists(root, a.Path) {
			return false
		}
	}
	missing := false
	for e := range source.All() {
		there := exists(root, e.Path)
		if there && e.Kind != tree.KindDir {
			return false
		}
		missing = missing || !there && !removed[e.Path]
	}
	return missing
}

func exists(root int, path string) bool {
	fd, err := fsys.OpenBeneath(root, fsys.Dir(path))
	if err == nil {
		defer fsys.CloseFD(fd)
		_, err = fsys.Lstatat(fd, fsys.Base(path))
	}
	return !fsys.IsErrno(err, unix.ENOENT, unix.ENOTDIR)
}

// Overlay returns a listing with the paths of actions as in another listing.
func Overlay(from, want *tree.Listing, actions []Action) *tree.Listing {
	entries := make(map[string]tree.Entry)
	for e := range from.All() {
		entries[e.Path] = *e
	}
	take := func(path string) {
		if e := want.Find(path); e != nil {
			entries[path] = *e
		}
	}
	for _, a := range actions {
		delete(entries, a.Path)
		if a.After.Absent() {
			continue
		}
		take(a.Path)
		fsys.Ancestors(a.Path, func(d string) bool { // the base may lack a parent that the present has
			if e := entries[d]; !e.IsDir() {
				take(d)
			}
			return true
		})
	}
	return tree.NewListing(slices.Collect(maps.Values(entries))) // without entries whose parent was removed
}
