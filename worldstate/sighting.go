package worldstate

import (
	"fmt"
	"sort"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// ignoredRoot is a topmost path the rules leave out of a scan.
type ignoredRoot struct {
	path  string
	isDir bool
}

// scanned is one look at a world.
type scanned struct {
	*tree.Listing
	repo    *usergit.Repository
	skips   []Skip // paths whose content is not held
	notes   []Skip // what is held, but not in full, and odd things met
	partial bool   // some skip is more than a FIFO, socket or device
	frozen  []gitfmt.FrozenRule
	// unheld counts files read whose bytes the store may lack: a scan that
	// does not store.
	unheld  int
	changed int             // counts files looked at anew
	whole   bool            // everything was looked at
	links   map[uint64]bool // inodes newly known to have several names
	drained int             // what the watcher had counted before
}

// gather collects what the nodes say beside their items.
func (sc *scanned) gather() {
	for _, r := range sc.repo.Outer {
		sc.frozen = append(sc.frozen, gitfmt.FrozenRule{Up: r.Up, Base: "", Patterns: r.Patterns})
	}
	sc.notes = append(sc.notes, sc.repo.Notes...)
	for d, n := range sc.repo.Nested {
		for _, note := range n.Notes {
			sc.notes = append(sc.notes, Skip{Path: fsys.Join(d, note.Path), Reason: note.Reason})
		}
	}
	sc.gatherIn(sc.Root, "")
	byPath := func(l []Skip) func(i, j int) bool {
		return func(i, j int) bool { return l[i].Path < l[j].Path }
	}
	sort.Slice(sc.skips, byPath(sc.skips))
	sort.Slice(sc.notes, byPath(sc.notes))
	sort.SliceStable(sc.frozen, func(i, j int) bool { return sc.frozen[i].Less(sc.frozen[j]) })
}

func (sc *scanned) gatherIn(n *tree.Node, path string) {
	if n.Seen == nil || n.Sum.Said == 0 {
		return
	}
	if n.Seen.Fault != "" {
		sc.skips, sc.partial = append(sc.skips, Skip{Path: path, Reason: n.Seen.Fault}), true
	}
	if n.Seen.Frozen {
		sc.frozen = append(sc.frozen, gitfmt.FrozenRule{Up: "", Base: path, Patterns: n.Seen.Rules.Patterns})
	}
	if n.Seen.RulesNote != "" {
		sc.notes = append(sc.notes, Skip{Path: fsys.Join(path, ".gitignore"), Reason: n.Seen.RulesNote})
	}
	for i := range n.Seen.Others {
		if o := &n.Seen.Others[i]; o.Why != "" {
			sc.skips = append(sc.skips, Skip{Path: fsys.Join(path, o.Name), Reason: o.Why})
			sc.partial = sc.partial || !tree.Bodiless(o.Why)
		}
	}
	for i := range n.Items {
		switch it := &n.Items[i]; {
		case it.Kind == tree.KindDir:
			sc.gatherIn(it.Sub, fsys.Join(path, it.Name))
		case it.Kind == tree.KindFile && n.Seen.Items[i].Mode&tree.SpecialBits != 0:
			sc.notes = append(sc.notes, Skip{Path: fsys.Join(path, it.Name), Reason: "setuid, setgid and sticky bits are not kept"})
		}
	}
}

// ignored lists the topmost ignored paths, sorted.
func (sc *scanned) ignored() []ignoredRoot {
	var out []ignoredRoot
	var walk func(n *tree.Node, path string)
	walk = func(n *tree.Node, path string) {
		if n.Sum.Ignored == 0 {
			return
		}
		for i := range n.Seen.Others {
			if o := &n.Seen.Others[i]; o.Why == "" {
				out = append(out, ignoredRoot{fsys.Join(path, o.Name), o.IsDir})
			}
		}
		for i := range n.Items {
			if sub := n.Items[i].Sub; sub != nil {
				walk(sub, fsys.Join(path, n.Items[i].Name))
			}
		}
	}
	walk(sc.Root, "")
	sort.Slice(out, func(i, j int) bool { return out[i].path < out[j].path })
	return out
}

// markLinks marks the names of some inodes that were known to have one name.
// A second one gives no event at the first, and neither do writes under it.
func markLinks(n *tree.Node, inodes map[uint64]bool, m *mark) (found bool) {
	if n.Seen == nil {
		return false
	}
	for i := range n.Items {
		switch it := &n.Items[i]; it.Kind {
		case tree.KindFile:
			if n.Seen.Items[i].Nlink <= 1 && inodes[n.Seen.Items[i].Ino] {
				m.add(it.Name)
				found = true
			}
		case tree.KindDir:
			if sub := (&mark{}); markLinks(it.Sub, inodes, sub) {
				m.sub(it.Name).names, m.subs[it.Name].subs = sub.names, sub.subs
				found = true
			}
		}
	}
	return found
}

// tooLongRules is the note on an ignore file that was not read.
func tooLongRules() string {
	return fmt.Sprintf("over %d bytes: its rules were not read", tree.MaxIgnoreBytes)
}
