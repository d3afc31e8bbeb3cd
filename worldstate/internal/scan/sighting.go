package scan

import (
	"cmp"
	"slices"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// IgnoredRoot is a topmost path that the rules leave out of a scan.
type IgnoredRoot struct {
	Path  string
	IsDir bool
}

// Scanned is the result of a scan.
type Scanned struct {
	*tree.Listing
	repo  *usergit.Repository
	Skips []gitfmt.Skip // paths whose content is not stored
	Notes []gitfmt.Skip // paths stored without some attribute, and unusual findings
	// Unstored are files with special bits or several names, and what they have of these; at
	// most maxUnstored.
	Unstored []gitfmt.Skip
	Partial  bool // some skip is more than a FIFO, socket or device
	Frozen   []gitfmt.FrozenRule
	Secrets  []string // ignored files that are listed for their names
	changed  int      // counts files read
}

// maxUnstored limits what a snapshot's message says of such files: a tree of a package manager
// may consist of hard links.
const maxUnstored = 100

// gather collects skips, notes and frozen rules from the nodes.
func (sc *Scanned) gather(secrets map[string]bool) {
	for path := range secrets {
		if !sc.At(path).Absent() { // otherwise it could not be read, or is over the limit
			sc.Secrets = append(sc.Secrets, path)
		}
	}
	slices.Sort(sc.Secrets)
	for _, r := range sc.repo.Outer {
		sc.Frozen = append(sc.Frozen, gitfmt.FrozenRule{Up: r.Up, Base: "", Patterns: r.Patterns})
	}
	sc.Notes = append(sc.Notes, sc.repo.Notes...)
	for d, n := range sc.repo.Nested {
		for _, note := range n.Notes {
			sc.Notes = append(sc.Notes, gitfmt.Skip{Path: fsys.Join(d, note.Path), Reason: note.Reason})
		}
	}
	sc.Root.Dirs("", sc.gatherIn)
	byPath := func(a, b gitfmt.Skip) int { return strings.Compare(a.Path, b.Path) }
	slices.SortStableFunc(sc.Skips, byPath)
	slices.SortStableFunc(sc.Notes, byPath)
	slices.SortStableFunc(sc.Frozen, func(a, b gitfmt.FrozenRule) int {
		return cmp.Or(strings.Compare(a.Base, b.Base), len(b.Up)-len(a.Up)) // from the outside in
	})
}

func (sc *Scanned) gatherIn(path string, n *tree.Node) bool {
	if n.Seen == nil || n.Sum.Said == 0 { // nothing beneath has anything to report
		return false
	}
	if n.Seen.Fault != "" {
		sc.Skips, sc.Partial = append(sc.Skips, gitfmt.Skip{Path: path, Reason: n.Seen.Fault}), true
	}
	if n.Seen.Frozen {
		sc.Frozen = append(sc.Frozen, gitfmt.FrozenRule{Up: "", Base: path, Patterns: n.Seen.Rules.Patterns})
	}
	if n.Seen.RulesNote != "" {
		sc.Notes = append(sc.Notes, gitfmt.Skip{Path: fsys.Join(path, ".gitignore"), Reason: n.Seen.RulesNote})
	}
	for i := range n.Seen.Others {
		if o := &n.Seen.Others[i]; o.Why != "" {
			sc.Skips = append(sc.Skips, gitfmt.Skip{Path: fsys.Join(path, o.Name), Reason: o.Why})
			sc.Partial = sc.Partial || !tree.HasNoBytes(o.Why)
		}
	}
	for i := range n.Items {
		it, seen := &n.Items[i], &n.Seen.Items[i]
		if it.Kind != tree.KindFile {
			continue
		}
		skip := gitfmt.Skip{Path: fsys.Join(path, it.Name), Reason: "setuid, setgid and sticky bits are not kept"}
		if seen.Mode&tree.SpecialBits != 0 {
			sc.Notes = append(sc.Notes, skip)
		}
		if names := tree.Unstored(seen.Mode, seen.Nlink); len(names) > 0 && len(sc.Unstored) < maxUnstored {
			skip.Reason = strings.Join(names, tree.UnstoredSep)
			sc.Unstored = append(sc.Unstored, skip)
		}
	}
	return true
}

// Ignored returns the topmost ignored paths, sorted.
func (sc *Scanned) Ignored() []IgnoredRoot {
	var out []IgnoredRoot
	sc.Root.Dirs("", func(path string, n *tree.Node) bool {
		if n.Sum.Ignored == 0 {
			return false
		}
		for i := range n.Seen.Others {
			if o := &n.Seen.Others[i]; o.Why == "" {
				out = append(out, IgnoredRoot{fsys.Join(path, o.Name), o.IsDir})
			}
		}
		return true
	})
	slices.SortFunc(out, func(a, b IgnoredRoot) int { return strings.Compare(a.Path, b.Path) })
	return out
}
