//go:build unix

package worldstate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
)

// PlanOptions narrow a plan.
type PlanOptions struct {
	// Paths restricts the plan to these paths and what lies beneath them;
	// relative to the world, or absolute inside it. None: everything.
	Paths []string
	// OverwriteEdits also reverts what was changed since Base.
	OverwriteEdits bool
	// Base is the snapshot since which a change counts as a user's edit and
	// is kept. "" is the snapshot this world was last known at (Last). Where no
	// file stands in the world nothing counts as one: see Plan.Lost.
	Base ID
	// Edits are changes that were made after the target, the oldest first. Each
	// path they touched is to stand as the last of them left it, also where it was
	// changed again since (Plan.Conflicts).
	Edits []Edit
	// OtherWorld permits a target that was taken of another directory.
	OtherWorld bool
}

// A Plan is what a restore would do: a dry run. Only this package makes one
// that Restore accepts. Directories end in a slash in all lists.
type Plan struct {
	Hash   string   `json:"plan"`
	Source ID       `json:"source,omitempty"` // the snapshot that equals the present world, if there is one
	Target ID       `json:"target"`
	Base   ID       `json:"base,omitempty"`
	Write  []string `json:"write"`  // created or changed
	Delete []string `json:"delete"` // removed
	Keep   []Skip   `json:"keep"`   // would differ from the target, and why each stays
	// Conflicts are those of Keep that PlanOptions.Edits touched and that were
	// changed again since, by whoever else writes here: as the edit left them they
	// stand afterwards.
	Conflicts []string `json:"conflicts,omitempty"`
	// Lost: the base has files and the world has none. The directory was removed
	// as a whole, or emptied; nothing in it counts as a user's edit.
	Lost bool `json:"lost,omitempty"`
	// BaseLost: the store has lost the base asked for, as this line says. Base is
	// Target, and what differs from it counts as edited.
	BaseLost string `json:"base_lost,omitempty"`

	// Skipped are paths of the world that no snapshot holds, and why. Each stays.
	Skipped []Skip `json:"-"`

	options  PlanOptions
	actions  []restore.Action
	now      *tree.Listing
	overlaid bool // Edits make the world another than the target
}

// Empty reports whether the plan moves nothing.
func (p *Plan) Empty() bool { return len(p.actions) == 0 }

// Plan works out what restoring target would do, and checks that every object
// it needs is there and intact. Nothing is written. Errors: ErrUnknown,
// ErrRefused for another world's snapshot, ErrNoPath for a path in
// PlanOptions.Paths that is nowhere, *MissingObjectError, ErrUnfinished.
func (w *World) Plan(ctx context.Context, target ID, o *PlanOptions) (Plan, error) {
	end, err := w.begin(ctx, reading)
	if err != nil {
		return Plan{}, err
	}
	defer end()
	if err := w.checkNoJournal(); err != nil {
		return Plan{}, err
	}
	root, err := fsys.OpenRoot(w.dir)
	if err != nil {
		return Plan{}, err
	}
	defer root.Close()
	sc, err := w.see(ctx, root, nil)
	if err != nil {
		return Plan{}, err
	}
	if o == nil {
		o = &PlanOptions{}
	}
	return w.planFrom(ctx, root.Fd, sc, target, *o)
}

// planFrom plans from a scan.
func (w *World) planFrom(ctx context.Context, root int, sc *scan.Scanned, target ID, o PlanOptions) (Plan, error) {
	c, err := w.byID(target)
	if err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	if c.World != w.key && !o.OtherWorld && !sc.Empty() {
		return Plan{}, fmt.Errorf("plan: %w: snapshot %s was taken of another directory than %s", ErrRefused, target, w.dir)
	}
	if o.Paths, err = w.relativePaths(o.Paths); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	p := planner{w: w, ctx: ctx, root: root, now: sc, ignored: sc.Ignored(), target: c, o: o, kept: map[string]string{}}
	if p.want, err = w.tree(c.Tree); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", target, err)
	}
	if p.policy, err = w.policyOf(c, p.want); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", target, err)
	}
	head, err := w.head()
	if err != nil {
		return Plan{}, err
	}
	if p.o.Base == "" && !head.IsZero() {
		p.o.Base = ID(head.String())
	}
	p.base = tree.Empty()
	if p.o.Base != "" {
		b, err := w.byID(p.o.Base)
		if err == nil {
			p.base, err = w.tree(b.Tree)
		}
		switch {
		case isGone(p.o.Base, err):
			p.baseLost = lostLine(p.o.Base, err)
			p.o.Base, p.base = target, p.want
		case err != nil:
			return Plan{}, fmt.Errorf("plan: base %s: %w", p.o.Base, err)
		}
	}
	p.lost = p.now.Files() == 0 && p.base.Files() > 0
	return p.plan(head)
}

// relativePaths makes a caller's paths relative to the world.
func (w *World) relativePaths(paths []string) ([]string, error) {
	var out []string
	for _, path := range paths {
		if path == "" { // a variable that was not set must not mean the whole world
			return nil, fmt.Errorf("%w: an empty path; \".\" is the whole world", ErrRefused)
		}
		rel := filepath.Clean(path)
		if filepath.IsAbs(rel) {
			parent, err := filepath.EvalSymlinks(filepath.Dir(rel))
			if err != nil {
				return nil, err
			}
			if rel, err = filepath.Rel(w.dir, filepath.Join(parent, filepath.Base(rel))); err != nil {
				return nil, err
			}
		}
		rel = filepath.ToSlash(rel)
		if rel == "." {
			return nil, nil // the whole world
		}
		if !fsys.ValidPath(rel) {
			return nil, fmt.Errorf("%w: path %q is outside the world or in a git directory", ErrRefused, path)
		}
		out = append(out, rel)
	}
	sort.Strings(out)
	return out, nil
}

// planner works out one plan.
type planner struct {
	w        *World
	ctx      context.Context
	root     int
	now      *scan.Scanned
	ignored  []scan.IgnoredRoot // of now
	want     *tree.Listing
	base     *tree.Listing
	target   *gitfmt.Commit
	policy   *tree.Policy
	o        PlanOptions
	lost     bool // see Plan.Lost
	baseLost string

	overlaid  bool
	conflicts []string

	todo map[string]restore.Action
	kept map[string]string
}

func (p *planner) plan(head gitfmt.Hash) (Plan, error) {
	p.todo = make(map[string]restore.Action)
	if err := p.overlay(); err != nil {
		return Plan{}, err
	}
	if err := p.checkPaths(); err != nil {
		return Plan{}, err
	}
	var err error
	tree.Union(p.now.Listing, p.want, func(path string, now, want tree.State) {
		if err == nil && now != want && p.selected(path) {
			err = p.consider(path, now, want)
		}
	})
	if err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", p.target.Id, err)
	}
	p.addParents()
	p.unblock()
	p.dropOccupied()
	p.noteIgnored()
	out := Plan{
		Target: ID(p.target.Id.String()), Base: p.o.Base, Write: []string{}, Delete: []string{}, Keep: []Skip{},
		Lost: p.lost, BaseLost: p.baseLost, Conflicts: p.conflicts, Skipped: p.now.Skips, options: p.o, now: p.now.Listing, overlaid: p.overlaid,
	}
	for _, a := range p.todo {
		out.actions = append(out.actions, a)
	}
	sort.Slice(out.actions, func(i, j int) bool { return out.actions[i].Path < out.actions[j].Path })
	for _, a := range out.actions {
		if a.After.Absent() {
			out.Delete = append(out.Delete, shown(a.Path, a.Before))
			continue
		}
		out.Write = append(out.Write, shown(a.Path, a.After))
	}
	if err := p.w.probeAll(p.ctx, out.actions, func(a restore.Action) tree.State { return a.After }); err != nil {
		return Plan{}, fmt.Errorf("plan %s: %w", p.target.Id, err)
	}
	for path, why := range p.kept {
		out.Keep = append(out.Keep, Skip{Path: path, Reason: why})
	}
	sort.Slice(out.Keep, func(i, j int) bool { return out.Keep[i].Path < out.Keep[j].Path })
	if !head.IsZero() {
		if c, err := p.w.objects.Commit(head); err == nil && p.equals(c) {
			out.Source = ID(head.String())
		}
	}
	out.Hash = p.hash(&out)
	return out, nil
}

// probeAll finds out whether one end of every action can be had.
func (w *World) probeAll(ctx context.Context, actions []restore.Action, end func(a restore.Action) tree.State) error {
	return restore.AtOnce(len(actions), func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		s := end(actions[i])
		if s.Absent() || s.IsDir() {
			return nil
		}
		return w.objects.Probe(s.Hash, gitfmt.BlobObject, actions[i].Path)
	})
}

func shown(path string, s tree.State) string {
	if s.IsDir() {
		return path + "/"
	}
	return path
}

// equals reports whether a snapshot is the world as scanned.
func (p *planner) equals(c *gitfmt.Commit) bool {
	return p.w.treeOf(p.now.Listing) == c.Tree
}

// hash covers all a plan would do and everything it rests on.
func (p *planner) hash(out *Plan) string {
	h := sha256.New()
	fmt.Fprintf(h, "anamnesis-plan 1\n%s\n%s\n%q\n%t\n", p.w.key, p.target.Tree, p.o.Paths, p.o.OverwriteEdits)
	for _, a := range out.actions {
		fmt.Fprintf(h, "%s %s %s\n", a.Before, a.After, strconv.QuoteToASCII(a.Path))
	}
	for _, k := range out.Keep {
		fmt.Fprintf(h, "keep %s %s\n", strconv.QuoteToASCII(k.Path), k.Reason)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

func (p *planner) selected(path string) bool {
	if len(p.o.Paths) == 0 {
		return true
	}
	for _, root := range p.o.Paths {
		if fsys.Beneath(path, root) {
			return true
		}
	}
	return false
}

// checkPaths refuses a selected path that stands nowhere: it is misspelt.
func (p *planner) checkPaths() error {
	for _, root := range p.o.Paths {
		_, skipped := under(p.target.Skips, root)
		if p.now.At(root).Absent() && p.want.At(root).Absent() && p.base.At(root).Absent() && !skipped && !p.notSeen(root) {
			return fmt.Errorf("plan: %w: %q stands neither in the world nor in snapshot %s", ErrNoPath, root, short(ID(p.target.Id.String())))
		}
	}
	return nil
}

// under gives the skip at or above a path.
func under(list []Skip, path string) (Skip, bool) {
	for _, s := range list {
		if fsys.Beneath(path, s.Path) {
			return s, true
		}
	}
	return Skip{}, false
}

// editReason says what a user did to a path.
func editReason(base, now tree.State) string {
	switch {
	case now.Absent():
		return gitfmt.KeepDeleted
	case base.Absent():
		return gitfmt.KeepCreated
	}
	return gitfmt.KeepEdited
}

// consider decides about one path that differs.
func (p *planner) consider(path string, now, want tree.State) error {
	if p.editedSinceBase(path, now) {
		p.kept[shown(path, now)] = editReason(p.base.At(path), now)
		return nil
	}
	if skip, ok := under(p.now.Skips, path); ok {
		p.kept[path] = skip.Reason
		return nil
	}
	if p.w.track.IsExcluded(path) {
		return nil
	}
	if want.Absent() {
		if skip, ok := under(p.target.Skips, path); ok {
			p.kept[shown(path, now)] = gitfmt.KeepUnread
			if skip.Reason == scan.ReasonTooDeep || strings.HasPrefix(skip.Reason, scan.ReasonTooLarge) {
				p.kept[shown(path, now)] = gitfmt.KeepLeftOut + skip.Reason
			}
			return nil
		}
		if p.policy.Ignored(path, now.IsDir()) {
			p.kept[shown(path, now)] = gitfmt.KeepIgnored
			return nil
		}
		p.todo[path] = restore.Action{Path: path, Before: now, After: want}
		return nil
	}
	if now.Absent() && p.ignoredNow(path) {
		return p.considerIgnored(path, want)
	}
	p.todo[path] = restore.Action{Path: path, Before: now, After: want}
	return nil
}

// editedSinceBase reports whether a path is to stay because it was changed after
// the base.
func (p *planner) editedSinceBase(path string, now tree.State) bool {
	return !p.o.OverwriteEdits && p.o.Base != "" && !p.lost && now != p.base.At(path) && !p.notSeen(path)
}

// notSeen: the scan did not look at the path, so its absence is no edit.
func (p *planner) notSeen(path string) bool {
	if _, skipped := under(p.now.Skips, path); skipped {
		return true
	}
	return p.ignoredNow(path) || p.w.track.IsExcluded(path)
}

// addParents plans the directories a planned file needs and the world lacks,
// where the selection or an edit left them out.
func (p *planner) addParents() {
	var missing []string
	for path, a := range p.todo {
		if a.After.Absent() {
			continue
		}
		fsys.Ancestors(path, func(d string) bool {
			if _, planned := p.todo[d]; !planned && p.now.At(d).Absent() && !p.ignoredNow(d) {
				missing = append(missing, d)
			}
			return true
		})
	}
	for _, d := range missing {
		p.todo[d] = restore.Action{Path: d, After: p.want.At(d)}
		delete(p.kept, d)
		delete(p.kept, d+"/")
	}
}

// unblock drops writes beneath something that is no directory and stays.
func (p *planner) unblock() {
	for path, a := range p.todo {
		if a.After.Absent() {
			continue
		}
		blocked := false
		fsys.Ancestors(path, func(d string) bool {
			if a, planned := p.todo[d]; planned {
				blocked = !a.After.IsDir()
			} else if s := p.now.At(d); !s.Absent() {
				blocked = !s.IsDir()
			} else if _, skipped := under(p.now.Skips, d); skipped {
				blocked = true
			}
			return !blocked
		})
		if blocked {
			delete(p.todo, path)
			p.kept[shown(path, a.After)] = gitfmt.KeepBlocked
		}
	}
}

// dropOccupied takes back the removal of directories in which something
// stays, and lists them.
func (p *planner) dropOccupied() {
	occupied := make(map[string]bool)
	mark := func(path string) {
		fsys.Ancestors(path, func(d string) bool { occupied[d] = true; return true })
	}
	for _, r := range p.ignored {
		mark(r.Path)
	}
	for _, s := range p.now.Skips {
		mark(s.Path)
		occupied[s.Path] = true
	}
	for path := range p.w.track.Excluded {
		mark(path)
	}
	var removed []string
	for path, a := range p.todo {
		if a.Before.IsDir() && !a.After.IsDir() {
			removed = append(removed, path)
		}
	}
	sort.Sort(sort.Reverse(sort.StringSlice(removed))) // children first
	for _, path := range removed {
		if !occupied[path] && !p.holdsOther(path) && !p.hasAlwaysIgnored(path) {
			continue
		}
		p.kept[path+"/"] = gitfmt.KeepHolds
		delete(p.todo, path)
		mark(path)
	}
}

type plainPlan Plan

// MarshalJSON adds write_bytes and delete_bytes where a path is not UTF-8.
func (p Plan) MarshalJSON() ([]byte, error) { return gitfmt.MarshalNames((*plainPlan)(&p)) }

// UnmarshalJSON reads what MarshalJSON writes: what a plan says, but not what
// Restore needs.
func (p *Plan) UnmarshalJSON(data []byte) error { return gitfmt.UnmarshalNames(data, (*plainPlan)(p)) }
