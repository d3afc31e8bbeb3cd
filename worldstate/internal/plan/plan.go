// Package plan decides what a restore does to each path of a world. It reads the world and its
// snapshots, and changes nothing.
package plan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
)

// ErrNoPath: neither the snapshot nor the world has a requested path.
var ErrNoPath = errors.New("no such path")

// Options narrow a plan.
type Options struct {
	// Paths restricts the plan to these paths and everything beneath them; relative to the
	// world. A World also takes absolute ones inside it. Empty means everything.
	Paths []string
	// OverwriteEdits also reverts changes since Base.
	OverwriteEdits bool
	// Base is the snapshot since which a change counts as a user's edit and is kept. "" means
	// the snapshot this world was last known at. If the world has no files, nothing
	// counts as an edit: see Plan.Lost.
	Base gitfmt.ID
	// Edits are changes made after the target, the oldest first. Each path that they changed is
	// restored to its state after the last of them, even if it was changed again since
	// (Plan.Conflicts).
	Edits []Edit
	// OtherWorld permits a target that was taken of another directory.
	OtherWorld bool
}

// A Plan describes what a restore would do. A restore computes it again and requires the same
// hash. In all lists directories end in a slash.
type Plan struct {
	Hash   string        `json:"plan"`
	Source gitfmt.ID     `json:"source,omitempty"` // the snapshot that equals the present world, if any
	Target gitfmt.ID     `json:"target"`
	Base   gitfmt.ID     `json:"base,omitempty"`
	Write  []string      `json:"write"`  // created or changed
	Delete []string      `json:"delete"` // removed
	Keep   []gitfmt.Skip `json:"keep"`   // will differ from the target, and why
	// Unchanged are the paths of Options.Paths at and beneath which there is nothing to do, and
	// why.
	Unchanged []gitfmt.Skip `json:"unchanged,omitempty"`
	// Conflicts are the paths of Keep that Options.Edits changed and that were changed again
	// since. They are restored to the state after the edit.
	Conflicts []string `json:"conflicts,omitempty"`
	// Lost: the base has files and the world has none. The directory was removed or emptied as
	// a whole; nothing in it counts as a user's edit.
	Lost bool `json:"lost,omitempty"`
	// BaseLost: the store has lost the requested base, as this line says. Base is Target, and
	// everything that differs from it counts as edited.
	BaseLost string `json:"base_lost,omitempty"`

	// Skipped are paths of the world that no snapshot holds, and why. Each is kept.
	Skipped []gitfmt.Skip `json:"-"`

	// The following fields are for the package that carries out the plan.
	Options  Options          `json:"-"`
	Actions  []restore.Action `json:"-"`
	Overlaid bool             `json:"-"` // Edits make the result differ from the target
}

// Empty reports whether the plan changes nothing.
func (p *Plan) Empty() bool { return len(p.Actions) == 0 }

// Input is what a plan depends on.
type Input struct {
	World    string // the key of the directory
	Root     int    // the directory, open
	Now      *scan.Scanned
	Track    *scan.Tracker
	Objects  *objects.Store
	Target   *gitfmt.Commit
	Want     *tree.Listing // the target's
	Policy   *tree.Policy  // the target's
	Base     *tree.Listing // of Options.Base
	BaseLost string        // see Plan.BaseLost
	Options  Options
	// Listing returns a snapshot's listing.
	Listing func(id gitfmt.ID) (*tree.Listing, error)
}

type planner struct {
	Input
	ignored []scan.IgnoredRoot // of Now
	lost    bool               // see Plan.Lost

	overlaid  bool
	conflicts []string

	todo map[string]restore.Action
	kept map[string]string
}

// Make computes a plan, and checks that the store can read every object it needs.
func Make(ctx context.Context, in Input) (Plan, error) {
	p := planner{Input: in, ignored: in.Now.Ignored(), todo: map[string]restore.Action{}, kept: map[string]string{}}
	p.lost = p.Now.Files() == 0 && p.Base.Files() > 0 // the directory was emptied or unmounted, not edited file by file
	target := p.Want                                  // without the edits that the user made since
	if err := p.overlay(ctx); err != nil {
		return Plan{}, err
	}
	if err := p.checkPaths(target); err != nil {
		return Plan{}, err
	}
	tree.Union(p.Now.Listing, p.Want, func(path string, now, want tree.State) {
		if now != want && p.selected(path) {
			p.decide(path, now, want)
		}
	})
	p.addParents()
	p.dropBlocked()
	p.dropOccupied()
	p.listIgnored()
	out := Plan{
		Target: gitfmt.ID(p.Target.Id.String()), Base: p.Options.Base, Options: p.Options,
		Write: []string{}, Delete: []string{}, Keep: []gitfmt.Skip{}, Skipped: p.Now.Skips,
		Lost: p.lost, BaseLost: p.BaseLost, Conflicts: p.conflicts, Overlaid: p.overlaid,
	}
	byPath := func(a, b restore.Action) int { return strings.Compare(a.Path, b.Path) }
	out.Actions = slices.SortedFunc(maps.Values(p.todo), byPath)
	for _, a := range out.Actions {
		if a.After.Absent() {
			out.Delete = append(out.Delete, ListedPath(a.Path, a.Before))
			continue
		}
		out.Write = append(out.Write, ListedPath(a.Path, a.After))
	}
	// A plan that cannot be carried out is refused now, not with half of the files moved.
	if err := restore.ProbeAll(ctx, p.Objects, out.Actions, restore.AfterOf); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", p.Target.Id, err)
	}
	for _, path := range slices.Sorted(maps.Keys(p.kept)) {
		out.Keep = append(out.Keep, gitfmt.Skip{Path: path, Reason: p.kept[path]})
	}
	out.Unchanged = p.unchanged(&out)
	out.Hash = p.hash(&out)
	return out, nil
}

// unchanged explains the requested paths that the plan does not list.
func (p *planner) unchanged(out *Plan) (list []gitfmt.Skip) {
	listed := slices.Concat(out.Write, out.Delete)
	for _, k := range out.Keep {
		listed = append(listed, k.Path)
	}
	for _, root := range p.Options.Paths {
		beneath := func(path string) bool { return fsys.Beneath(strings.TrimSuffix(path, "/"), root) }
		if slices.ContainsFunc(listed, beneath) {
			continue
		}
		reason := gitfmt.SameAsTarget
		if skip, ok := skipAbove(p.Now.Skips, root); ok {
			reason = skip.Reason
		} else if p.wasSkipped(root) {
			reason = gitfmt.NeverHeld
		}
		list = append(list, gitfmt.Skip{Path: root, Reason: reason})
	}
	return list
}

// ListedPath returns a path as lists show it: a directory ends in a slash.
func ListedPath(path string, s tree.State) string {
	if s.IsDir() {
		return path + "/"
	}
	return path
}

type plainPlan Plan

// MarshalJSON adds write_bytes and delete_bytes where a path is not UTF-8.
func (p Plan) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainPlan)(&p)) }

// RelativePaths makes a caller's paths relative to the world at dir. An empty result means the
// whole world.
func RelativePaths(dir string, paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		if path == "" { // an unset variable must not mean the whole world
			return nil, fmt.Errorf("%w: an empty path; \".\" is the whole world", gitfmt.ErrRefused)
		}
		rel := filepath.Clean(path)
		if filepath.IsAbs(rel) {
			parent, err := filepath.EvalSymlinks(filepath.Dir(rel))
			if err != nil {
				return nil, err
			}
			if rel, err = filepath.Rel(dir, filepath.Join(parent, filepath.Base(rel))); err != nil {
				return nil, err
			}
		}
		rel = filepath.ToSlash(rel)
		if rel == "." {
			return nil, nil // the whole world
		}
		if !fsys.ValidPath(rel) {
			return nil, fmt.Errorf("%w: path %q is outside the world or in a git directory", gitfmt.ErrRefused, path)
		}
		out = append(out, rel)
	}
	slices.Sort(out)
	return out, nil
}
