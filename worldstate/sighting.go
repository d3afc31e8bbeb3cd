package worldstate

import (
	"fmt"
	"sort"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// sighting is what a scan saw of a directory beside what a listing holds: the
// stat cache, and what has no place in a snapshot. It is not changed once its
// node is sealed.
type sighting struct {
	dir    fsys.Sight   // the directory itself, before its names were read
	items  []fsys.Sight // beside node.items
	others []other      // by name
	// rules are the directory's own .gitignore, as it was at ruleSight.
	rules     ignore.Rules
	ruleSight fsys.Sight
	frozen    bool // the rules' file is not part of the snapshot itself
	rulesNote string
	fault     string // why the directory could not be read
	foreign   bool   // no event tells of changes here: another file system, or one directory at two places
}

// other is a name that is no part of the snapshot.
type other struct {
	name  string
	why   string // "": the rules ignore it
	isDir bool
}

// bodiless reports a reason that makes no snapshot partial: there are no bytes.
func bodiless(why string) bool {
	return why == reasonFIFO || why == reasonSocket || why == reasonDevice
}

// seenSummary counts, of a directory and all beneath, what scans must know
// without walking there.
type seenSummary struct {
	unsure  int // to be looked at again even if no event tells of a change
	said    int // skips, notes and frozen rules
	ignored int
}

func (s *seenSummary) add(o *seenSummary) {
	s.unsure += o.unsure
	s.said += o.said
	s.ignored += o.ignored
}

// addSeen adds a node's own sighting; what lies beneath is counted already.
func (s *seenSummary) addSeen(n *node) {
	if n.seen == nil {
		return
	}
	for i := range n.seen.items {
		if n.items[i].kind == kindFile {
			if n.seen.items[i].Nlink > 1 { // another name of it may lie outside
				s.unsure++
			}
			if n.seen.items[i].Mode&specialBits != 0 {
				s.said++
			}
		}
	}
	for i := range n.seen.others {
		switch o := &n.seen.others[i]; {
		case o.why == "":
			s.ignored++
		case bodiless(o.why):
			s.said++
		default:
			s.said++
			s.unsure++
		}
	}
	if n.seen.foreign {
		s.unsure++
	}
	if n.seen.fault != "" {
		s.unsure++
		s.said++
	}
	if n.seen.frozen || n.seen.rulesNote != "" {
		s.said++
	}
}

// specialBits are those a snapshot does not keep.
const specialBits = unix.S_ISUID | unix.S_ISGID | unix.S_ISVTX

// ignoredRoot is a topmost path the rules leave out of a scan.
type ignoredRoot struct {
	path  string
	isDir bool
}

// scanned is one look at a world.
type scanned struct {
	*listing
	repo    *repository
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
	for _, r := range sc.repo.outer {
		sc.frozen = append(sc.frozen, gitfmt.FrozenRule{Up: r.Up, Base: "", Patterns: r.Patterns})
	}
	sc.notes = append(sc.notes, sc.repo.notes...)
	for d, n := range sc.repo.nested {
		for _, note := range n.notes {
			sc.notes = append(sc.notes, Skip{Path: fsys.Join(d, note.Path), Reason: note.Reason})
		}
	}
	sc.gatherIn(sc.root, "")
	byPath := func(l []Skip) func(i, j int) bool {
		return func(i, j int) bool { return l[i].Path < l[j].Path }
	}
	sort.Slice(sc.skips, byPath(sc.skips))
	sort.Slice(sc.notes, byPath(sc.notes))
	sort.SliceStable(sc.frozen, func(i, j int) bool { return sc.frozen[i].Less(sc.frozen[j]) })
}

func (sc *scanned) gatherIn(n *node, path string) {
	if n.seen == nil || n.sum.said == 0 {
		return
	}
	if n.seen.fault != "" {
		sc.skips, sc.partial = append(sc.skips, Skip{Path: path, Reason: n.seen.fault}), true
	}
	if n.seen.frozen {
		sc.frozen = append(sc.frozen, gitfmt.FrozenRule{Up: "", Base: path, Patterns: n.seen.rules.Patterns})
	}
	if n.seen.rulesNote != "" {
		sc.notes = append(sc.notes, Skip{Path: fsys.Join(path, ".gitignore"), Reason: n.seen.rulesNote})
	}
	for i := range n.seen.others {
		if o := &n.seen.others[i]; o.why != "" {
			sc.skips = append(sc.skips, Skip{Path: fsys.Join(path, o.name), Reason: o.why})
			sc.partial = sc.partial || !bodiless(o.why)
		}
	}
	for i := range n.items {
		switch it := &n.items[i]; {
		case it.kind == kindDir:
			sc.gatherIn(it.sub, fsys.Join(path, it.name))
		case it.kind == kindFile && n.seen.items[i].Mode&specialBits != 0:
			sc.notes = append(sc.notes, Skip{Path: fsys.Join(path, it.name), Reason: "setuid, setgid and sticky bits are not kept"})
		}
	}
}

// ignored lists the topmost ignored paths, sorted.
func (sc *scanned) ignored() []ignoredRoot {
	var out []ignoredRoot
	var walk func(n *node, path string)
	walk = func(n *node, path string) {
		if n.sum.ignored == 0 {
			return
		}
		for i := range n.seen.others {
			if o := &n.seen.others[i]; o.why == "" {
				out = append(out, ignoredRoot{fsys.Join(path, o.name), o.isDir})
			}
		}
		for i := range n.items {
			if sub := n.items[i].sub; sub != nil {
				walk(sub, fsys.Join(path, n.items[i].name))
			}
		}
	}
	walk(sc.root, "")
	sort.Slice(out, func(i, j int) bool { return out[i].path < out[j].path })
	return out
}

// markLinks marks the names of some inodes that were known to have one name.
// A second one gives no event at the first, and neither do writes under it.
func (n *node) markLinks(inodes map[uint64]bool, m *mark) (found bool) {
	if n.seen == nil {
		return false
	}
	for i := range n.items {
		switch it := &n.items[i]; it.kind {
		case kindFile:
			if n.seen.items[i].Nlink <= 1 && inodes[n.seen.items[i].Ino] {
				m.add(it.name)
				found = true
			}
		case kindDir:
			if sub := (&mark{}); it.sub.markLinks(inodes, sub) {
				m.sub(it.name).names, m.subs[it.name].subs = sub.names, sub.subs
				found = true
			}
		}
	}
	return found
}

// tooLongRules is the note on an ignore file that was not read.
func tooLongRules() string {
	return fmt.Sprintf("over %d bytes: its rules were not read", maxIgnoreBytes)
}
