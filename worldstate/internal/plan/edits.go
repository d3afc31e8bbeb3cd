package plan

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
)

// An Edit is a change of the world that later restores keep: the difference between two
// successive snapshots. Its paths are not listed; they follow from the two trees. An Edit
// without From and To is the difference between Options.Base and the present world, and must be
// the last: nothing else is then kept for having changed since Base.
type Edit struct {
	From, To gitfmt.ID
	// Or is a second snapshot before the change, or "". A path is part of the change if To
	// differs from both. It is the target of a restore that was moving From there.
	Or gitfmt.ID
	// Only, if not empty, are the paths of the change, as JSON holds them: the bytes of a name
	// that is not UTF-8 are U+FFFD.
	Only []string
	// Unknown: it is not known who changed the world.
	Unknown bool
}

// version is the last state in which an edit left a path.
type version struct {
	tree.State
	from    *tree.Listing // contains it
	edit    int           // index of the edit
	unknown bool
}

func (v version) reason(conflict bool) string {
	switch {
	case v.unknown && conflict:
		return gitfmt.KeepUnsureConflict
	case v.unknown:
		return gitfmt.KeepUnsure
	case conflict:
		return gitfmt.KeepConflict
	}
	return gitfmt.KeepMade
}

// versions returns, for every path that the edits changed, its state after the last of them.
func (p *planner) versions(ctx context.Context) (map[string]version, error) {
	last := make(map[string]version)
	for i, e := range p.Options.Edits {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if e.To == "" {
			p.unsaved(last, i, e.Unknown)
			continue
		}
		var ends [3]*tree.Listing
		for n, id := range []gitfmt.ID{e.From, e.To, cmp.Or(e.Or, e.From)} {
			var err error
			if ends[n], err = p.Listing(id); err != nil {
				return nil, fmt.Errorf("plan: edit: %w", err)
			}
		}
		only := make(map[string]bool, len(e.Only))
		for _, path := range e.Only {
			only[path] = true
		}
		tree.Union(ends[0], ends[1], func(path string, from, to tree.State) {
			listed := len(only) == 0 || only[string([]rune(path))] // replaces bytes that are not UTF-8, as JSON does
			if from != to && to != ends[2].At(path) && listed {
				last[path] = version{to, ends[1], i, e.Unknown}
			}
		})
	}
	return last, nil
}

// unsaved adds the changes since the base to the versions, as if they were saved first, unless
// they do not count as edits.
func (p *planner) unsaved(last map[string]version, edit int, unknown bool) {
	if p.Options.OverwriteEdits || p.Options.Base == "" || p.lost {
		return
	}
	tree.Union(p.Base, p.Now.Listing, func(path string, from, to tree.State) {
		if from != to {
			last[path] = version{to, p.Now.Listing, edit, unknown}
		}
	})
	p.Base = p.Now.Listing
}

// withVersions returns a listing with the versions in place of its own states. An entry keeps
// its parent directories, whoever removed them. If a file of one version conflicts with a path
// of another, the later edit wins. lost are the versions that were dropped, blocked the
// target's own paths that were.
func withVersions(target *tree.Listing, last map[string]version) (
	want *tree.Listing, lost map[string]bool, blocked []string,
) {
	entries, fixed := make(map[string]tree.Entry), make(map[string]bool)
	for e := range target.All() {
		if _, edited := last[e.Path]; !edited {
			entries[e.Path] = *e
		}
	}
	lost = make(map[string]bool)
	latestFirst := func(a, b string) int {
		return cmp.Or(cmp.Compare(last[b].edit, last[a].edit), cmp.Compare(a, b))
	}
	for _, path := range slices.SortedFunc(maps.Keys(last), latestFirst) {
		v := last[path]
		if v.Absent() {
			continue
		}
		free := !fixed[path] || v.IsDir() // otherwise a later edit needs a directory here
		fsys.Ancestors(path, func(d string) bool {
			free = free && (!fixed[d] || entries[d].IsDir())
			return free
		})
		if !free {
			lost[path] = true
			continue
		}
		entries[path], fixed[path] = *v.from.Find(path), true
		fsys.Ancestors(path, func(d string) bool {
			if e, stands := entries[d]; !stands || !e.IsDir() {
				entries[d] = *v.from.Find(d)
			}
			fixed[d] = true
			return true
		})
	}
	for e := range target.All() {
		if _, edited := last[e.Path]; edited {
			continue
		}
		inTheWay := false
		fsys.Ancestors(e.Path, func(d string) bool {
			above, stands := entries[d]
			if !stands { // an edit removed it, but not its content
				above = *target.Find(d)
				entries[d], lost[d] = above, true
			}
			inTheWay = !above.IsDir()
			return !inTheWay
		})
		if inTheWay {
			delete(entries, e.Path)
			blocked = append(blocked, ListedPath(e.Path, e.State))
		}
	}
	return tree.NewListing(slices.Collect(maps.Values(entries))), lost, blocked
}

// overlay applies the edits to the planned listing, and lists them in kept.
func (p *planner) overlay(ctx context.Context) error {
	last, err := p.versions(ctx)
	if err != nil {
		return err
	}
	for path, v := range last {
		if v.State == p.Want.At(path) || !p.selected(path) {
			delete(last, path)
		}
	}
	if len(last) == 0 {
		return nil
	}
	bare := p.Want
	want, lost, blocked := withVersions(bare, last)
	p.Want, p.overlaid = want, true
	for _, path := range blocked {
		p.kept[path] = gitfmt.KeepBlocked
	}
	for path, v := range last {
		now := p.Now.At(path)
		edited := p.editedSinceBase(path, now)
		holds := holdsAny(want, path) && bare.At(path).Absent() || v.Absent() && holdsAny(bare, path)
		if lost[path] || holds || edited && now != v.State {
			continue // its content or its later change is listed instead
		}
		conflict := now != v.State && !p.lost
		if conflict && p.ignoredNow(path) { // the scan skipped it
			is, err := p.stateOnDisk(path)
			conflict = err != nil || is != v.State
		}
		p.kept[ListedPath(path, v.State)] = v.reason(conflict)
		if conflict {
			p.conflicts = append(p.conflicts, ListedPath(path, v.State))
		}
	}
	slices.Sort(p.conflicts)
	if p.Policy, err = tree.LoadPolicy(p.Target, p.Want, p.readRules); err != nil { // an edit may change ignore rules
		return fmt.Errorf("plan %s: %w", p.Target.Id, err)
	}
	return nil
}

// readRules reads a .gitignore, from the world if the store does not hold it yet.
func (p *planner) readRules(path string, s tree.State) ([]byte, error) {
	data, err := p.Objects.Read(s.Hash, gitfmt.BlobObject, path)
	if err == nil || p.Now.At(path) != s {
		return data, err
	}
	above, openErr := fsys.OpenBeneath(p.Root, fsys.Dir(path))
	if openErr != nil {
		return nil, err
	}
	defer fsys.CloseFD(above)
	fd, openErr := fsys.Openat(above, fsys.Base(path), fsys.FileFlags, 0)
	if openErr != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, tree.MaxIgnoreBytes+1))
}

// holdsAny reports whether a path is a directory that is not empty.
func holdsAny(l *tree.Listing, path string) bool {
	n, i := l.Walk(path)
	return i >= 0 && n.Items[i].Sub != nil && len(n.Items[i].Sub.Items) > 0
}
