package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/restore"
	"anamnesis/worldstate/internal/scan"
	"anamnesis/worldstate/internal/tree"
)

// hash covers everything a plan would do and depends on.
func (p *planner) hash(out *Plan) string {
	h := sha256.New()
	o := &p.Options
	fmt.Fprintf(h, "anamnesis-plan 1\n%s\n%s\n%q\n%t\n", p.World, p.Target.Tree, o.Paths, o.OverwriteEdits)
	for _, a := range out.Actions {
		fmt.Fprintf(h, "%s %s %s\n", a.Before, a.After, strconv.QuoteToASCII(a.Path))
	}
	for _, k := range out.Keep {
		fmt.Fprintf(h, "keep %s %s\n", strconv.QuoteToASCII(k.Path), k.Reason)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}

func (p *planner) selected(path string) bool {
	beneath := func(root string) bool { return fsys.Beneath(path, root) }
	return len(p.Options.Paths) == 0 || slices.ContainsFunc(p.Options.Paths, beneath)
}

// checkPaths refuses a selected path that exists in neither end: it is probably misspelt.
func (p *planner) checkPaths(target *tree.Listing) error {
	for _, root := range p.Options.Paths {
		_, skipped := skipAbove(p.Target.Skips, root)
		absent := func(l *tree.Listing) bool { return l.At(root).Absent() }
		nowhere := absent(p.Now.Listing) && absent(p.Want) && absent(p.Base) && absent(target)
		if nowhere && !skipped && !p.wasSkipped(root) {
			return fmt.Errorf("plan: %w: %q is neither in the world nor in snapshot %s",
				ErrNoPath, root, gitfmt.Short(gitfmt.ID(p.Target.Id.String())))
		}
	}
	return nil
}

func skipAbove(list []gitfmt.Skip, path string) (gitfmt.Skip, bool) {
	for _, s := range list {
		if fsys.Beneath(path, s.Path) {
			return s, true
		}
	}
	return gitfmt.Skip{}, false
}

func editReason(base, now tree.State) string {
	switch {
	case now.Absent():
		return gitfmt.KeepDeleted
	case base.Absent():
		return gitfmt.KeepCreated
	}
	return gitfmt.KeepEdited
}

// decide chooses what happens to one path that differs.
func (p *planner) decide(path string, now, want tree.State) {
	if p.editedSinceBase(path, now) {
		p.kept[ListedPath(path, now)] = editReason(p.Base.At(path), now)
		return
	}
	if skip, ok := skipAbove(p.Now.Skips, path); ok {
		p.kept[path] = skip.Reason
		return
	}
	skip, skipped := skipAbove(p.Target.Skips, path)
	overLimit := skip.Reason == scan.ReasonTooDeep || strings.HasPrefix(skip.Reason, scan.ReasonTooLarge)
	// That the target lacks a path means removal only if its scan could have listed the path.
	switch {
	case p.Track.IsExcluded(path):
	case want.Absent() && skipped && overLimit:
		p.kept[ListedPath(path, now)] = gitfmt.KeepLeftOut + skip.Reason
	case want.Absent() && skipped:
		p.kept[ListedPath(path, now)] = gitfmt.KeepUnread
	case want.Absent() && p.Policy.Ignored(path, now.IsDir()):
		p.kept[ListedPath(path, now)] = gitfmt.KeepIgnored
	case want.Absent() && slices.Contains(p.Now.Secrets, path):
		p.kept[path] = gitfmt.KeepIgnoredNow
	case now.Absent() && p.ignoredNow(path):
		p.decideIgnored(path, want)
	default:
		p.todo[path] = restore.Action{Path: path, Before: now, After: want}
	}
}

// editedSinceBase reports whether a path is kept because it was changed after the base.
func (p *planner) editedSinceBase(path string, now tree.State) bool {
	return !p.Options.OverwriteEdits && p.Options.Base != "" && !p.lost && now != p.Base.At(path) && !p.wasSkipped(path)
}

// wasSkipped reports whether the scan skipped the path, so that its absence is not an edit.
func (p *planner) wasSkipped(path string) bool {
	if _, skipped := skipAbove(p.Now.Skips, path); skipped {
		return true
	}
	return p.ignoredNow(path) || p.Track.IsExcluded(path)
}

// addParents plans missing parent directories of planned files, which the selection or an edit
// left out.
func (p *planner) addParents() {
	var missing []string
	for path, a := range p.todo {
		if a.After.Absent() {
			continue
		}
		fsys.Ancestors(path, func(d string) bool {
			if _, planned := p.todo[d]; !planned && p.Now.At(d).Absent() && !p.ignoredNow(d) {
				missing = append(missing, d)
			}
			return true
		})
	}
	for _, d := range missing {
		p.todo[d] = restore.Action{Path: d, After: p.Want.At(d)}
		delete(p.kept, d)
		delete(p.kept, d+"/")
	}
}

// dropBlocked drops writes beneath something that is kept and is not a directory.
func (p *planner) dropBlocked() {
	for path, a := range p.todo {
		if a.After.Absent() {
			continue
		}
		blocked := false
		fsys.Ancestors(path, func(d string) bool {
			if a, planned := p.todo[d]; planned {
				blocked = !a.After.IsDir()
			} else if s := p.Now.At(d); !s.Absent() {
				blocked = !s.IsDir()
			} else if _, skipped := skipAbove(p.Now.Skips, d); skipped {
				blocked = true
			}
			return !blocked
		})
		if blocked {
			delete(p.todo, path)
			p.kept[ListedPath(path, a.After)] = gitfmt.KeepBlocked
		}
	}
}

// dropOccupied drops the removal of directories in which something is kept, and lists them.
func (p *planner) dropOccupied() {
	occupied := make(map[string]bool)
	mark := func(path string) {
		fsys.Ancestors(path, func(d string) bool { occupied[d] = true; return true })
	}
	for _, r := range p.ignored {
		mark(r.Path)
	}
	for _, s := range p.Now.Skips {
		mark(s.Path)
		occupied[s.Path] = true
	}
	for path := range p.Track.Excluded {
		mark(path)
	}
	var removed []string
	for path, a := range p.todo {
		if a.Before.IsDir() && !a.After.IsDir() {
			removed = append(removed, path)
		}
	}
	slices.Sort(removed)
	for _, path := range slices.Backward(removed) { // children first
		if !occupied[path] && !p.holdsOther(path) && !p.hasAlwaysIgnored(path) {
			continue
		}
		p.kept[path+"/"] = gitfmt.KeepHolds
		delete(p.todo, path)
		mark(path)
	}
}
