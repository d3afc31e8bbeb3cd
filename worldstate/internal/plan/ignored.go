package plan

import (
	"errors"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// stateOnDisk returns the state of a path that the scan skipped.
func (p *planner) stateOnDisk(path string) (tree.State, error) {
	x := restore.New(restore.Effects{Objects: p.Objects}, p.Root, &restore.Journal{})
	now, _, err := x.StateAt(path)
	return now, err
}

func (p *planner) ignoredNow(path string) bool {
	byPath := func(r scan.IgnoredRoot, path string) int { return strings.Compare(r.Path, path) }
	_, hit := slices.BinarySearchFunc(p.ignored, path, byPath)
	fsys.Ancestors(path, func(d string) bool {
		if !hit {
			_, hit = slices.BinarySearchFunc(p.ignored, d, byPath)
		}
		return !hit
	})
	return hit
}

// decideIgnored decides about a path of the target that the present rules ignore, so that no
// snapshot of the present holds it. It is written only if there is nothing, and an existing
// directory keeps its mode.
func (p *planner) decideIgnored(path string, want tree.State) {
	now, err := p.stateOnDisk(path)
	switch {
	case errors.Is(err, restore.ErrInTheWay):
		p.kept[path] = gitfmt.KeepBlocked
	case err != nil:
		p.kept[path] = "unreadable: " + usergit.Reason(err)
	case now == want:
	case now.Absent():
		p.todo[path] = restore.Action{Path: path, Before: now, After: want}
	case now.IsDir() && want.IsDir():
		p.kept[ListedPath(path, now)] = gitfmt.KeepNoMode
	default:
		p.kept[ListedPath(path, now)] = gitfmt.KeepNoBytes
	}
}

// holdsOther reports whether a directory contains something that is not planned to be removed.
func (p *planner) holdsOther(path string) bool {
	n, i := p.Now.Walk(path)
	if i < 0 || n.Items[i].Sub == nil {
		return false
	}
	return slices.ContainsFunc(n.Items[i].Sub.Items, func(it tree.Item) bool {
		a, planned := p.todo[fsys.Join(path, it.Name)]
		return !planned || !a.After.Absent()
	})
}

// hasAlwaysIgnored reports whether a directory contains a .git or .anamnesis, which scans skip
// silently.
func (p *planner) hasAlwaysIgnored(path string) bool {
	fd, err := fsys.OpenBeneath(p.Root, path)
	if err != nil {
		return false
	}
	defer fsys.CloseFD(fd)
	_, git := fsys.Lstatat(fd, ".git")
	_, state := fsys.Lstatat(fd, ".anamnesis")
	return git == nil || state == nil
}

// listIgnored lists paths that only the present rules ignore: they are kept, so that the world
// will differ from the target.
func (p *planner) listIgnored() {
	for _, r := range p.ignored {
		if s := p.Want.At(r.Path); !s.Absent() && !s.IsDir() || !p.selected(r.Path) {
			continue
		}
		if !p.Policy.Ignored(r.Path, r.IsDir) {
			path := r.Path
			if r.IsDir {
				path += "/"
			}
			if _, there := p.kept[path]; !there {
				p.kept[path] = gitfmt.KeepIgnoredNow
			}
		}
	}
}
