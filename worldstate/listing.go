package worldstate

import (
	"iter"
	"slices"
	"sort"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// listing is a whole world: every path but the root, each directory with its
// own entry. It is immutable; listings of worlds that are alike share the
// nodes of the directories in which they are.
type listing struct{ root *node }

// node is one directory of a listing with all that lies beneath. It is made by
// seal and not changed afterwards, held apart.
type node struct {
	items []item      // by name
	tree  gitfmt.Hash // the git tree, without a manifest; zero where nothing is captured beneath
	sum   summary
	held  bool      // the store has the trees of everything beneath; guarded by World.mu
	seen  *sighting // nil for a directory that no scan saw
}

// item is one name in a directory.
type item struct {
	name string
	state
	// stored is the name in the git tree, when it is not the true one (see
	// storedName).
	stored string
	size   int64 // of a file scanned; 0 when unknown
	sub    *node // of a directory; never nil there
}

// summary counts what lies beneath a directory, itself left out.
type summary struct {
	files int     // files and links
	odd   int     // names stored under others, and directories with nothing captured beneath
	modes []modeN // sorted
	seenSummary
}

// modeN counts the entries of one class that have one mode.
type modeN struct {
	class class
	perm  uint32
	n     int
}

// class is what has a usual mode of its own.
type class uint8

const (
	classFile class = iota
	classExec
	classDir
	classes
)

// class is that of a file or directory; a link has none.
func (s state) class() class {
	switch {
	case s.kind == kindDir:
		return classDir
	case s.perm&0o100 != 0:
		return classExec
	}
	return classFile
}

// entry is one path of a listing. Paths are relative to the world, with
// slashes, their bytes as they are.
type entry struct {
	path string
	state
	size   int64 // of a file scanned; 0 when unknown
	stored string
}

func storedBase(name, stored string) string {
	if stored != "" {
		return stored
	}
	return name
}

// seal makes a node of items, which must be sorted by name and are kept.
func seal(items []item, s *sighting) *node {
	n := sealAs(gitfmt.Hash{}, items, s)
	if n.sum.files > 0 {
		n.tree = gitfmt.HashObject(gitfmt.TreeObject, n.encode(nil))
	}
	return n
}

// sealAs is seal where the git tree's id is known.
func sealAs(tree gitfmt.Hash, items []item, s *sighting) *node {
	n := &node{tree: tree, items: items, seen: s}
	for i := range items {
		it := &items[i]
		if it.stored != "" {
			n.sum.odd++
		}
		if it.kind == kindDir {
			if it.sub.sum.files == 0 {
				n.sum.odd++
			}
			n.sum.add(&it.sub.sum)
		} else {
			n.sum.files++
		}
		if it.kind != kindLink {
			n.sum.count(modeN{it.class(), it.perm, 1})
		}
	}
	n.sum.addSeen(n)
	return n
}

func (s *summary) add(o *summary) {
	s.files += o.files
	s.odd += o.odd
	s.seenSummary.add(&o.seenSummary)
	for _, m := range o.modes {
		s.count(m)
	}
}

func (s *summary) count(m modeN) {
	i, ok := slices.BinarySearchFunc(s.modes, m, func(a, b modeN) int {
		if a.class != b.class {
			return int(a.class) - int(b.class)
		}
		return int(a.perm) - int(b.perm)
	})
	if ok {
		s.modes[i].n += m.n
	} else {
		s.modes = slices.Insert(s.modes, i, m)
	}
}

// plain reports whether everything beneath has the usual modes and needs no
// line in a manifest: then the git tree says it all.
func (s *summary) plain(u usualModes) bool {
	if s.odd > 0 {
		return false
	}
	for _, m := range s.modes {
		if m.perm != u[m.class] {
			return false
		}
	}
	return true
}

// sameAs reports that two directories are alike beneath, where that can be
// told from their summaries. false: they may be.
func (n *node) sameAs(o *node) bool {
	if n == o {
		return true
	}
	if n.tree != o.tree || n.sum.odd > 0 || o.sum.odd > 0 || len(n.sum.modes) != len(o.sum.modes) {
		return false
	}
	for i, m := range n.sum.modes {
		if m != o.sum.modes[i] || i > 0 && m.class == n.sum.modes[i-1].class {
			return false
		}
	}
	return true
}

// index gives a name's place in items, -1 when it is absent.
func (n *node) index(name string) int {
	i := sort.Search(len(n.items), func(i int) bool { return n.items[i].name >= name })
	if i < len(n.items) && n.items[i].name == name {
		return i
	}
	return -1
}

// item gives a name's item, nil when it is absent.
func (n *node) item(name string) *item {
	if i := n.index(name); i >= 0 {
		return &n.items[i]
	}
	return nil
}

// walk gives the directory a path lies in and its place there, -1 when it is
// absent.
func (l *listing) walk(path string) (*node, int) {
	n := l.root
	for {
		name, rest, deeper := strings.Cut(path, "/")
		i := n.index(name)
		if i < 0 || !deeper {
			return n, i
		}
		if n.items[i].sub == nil {
			return n, -1
		}
		n, path = n.items[i].sub, rest
	}
}

// at gives the state of a path; the zero state when it is absent.
func (l *listing) at(path string) state {
	if n, i := l.walk(path); i >= 0 {
		return n.items[i].state
	}
	return state{}
}

// find gives a path's entry, nil when it is absent.
func (l *listing) find(path string) *entry {
	n, i := l.walk(path)
	if i < 0 {
		return nil
	}
	it := &n.items[i]
	return &entry{path, it.state, it.size, it.stored}
}

// files counts what is not a directory.
func (l *listing) files() int { return l.root.sum.files }

// empty: nothing stands in it.
func (l *listing) empty() bool { return len(l.root.items) == 0 }

// all gives every entry in the order of path bytes.
func (l *listing) all() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		merge("", nil, l.root, func(path string, _, it *item) bool {
			return yield(&entry{path, it.state, it.size, it.stored})
		})
	}
}

func emptyListing() *listing { return &listing{seal(nil, nil)} }

// newListing makes a listing of entries in any order. Of a path that stands
// twice the last counts; what has no parent directory is left out.
func newListing(entries []entry) *listing {
	at := make(map[string][]item)
	for _, e := range entries {
		d := fsys.Dir(e.path)
		at[d] = append(at[d], item{name: fsys.Base(e.path), state: e.state, stored: e.stored, size: e.size})
	}
	var build func(path string) *node
	build = func(path string) *node {
		items := at[path]
		slices.SortStableFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
		kept := items[:0]
		for i := range items {
			if i+1 < len(items) && items[i+1].name == items[i].name {
				continue
			}
			if items[i].kind == kindDir {
				items[i].sub = build(fsys.Join(path, items[i].name))
			}
			kept = append(kept, items[i])
		}
		return seal(kept, nil)
	}
	return &listing{build("")}
}

// union calls f for the paths of a or b, in the order of path bytes, with the
// state in each. It passes over what lies beneath directories that are alike,
// so f hears of every path that differs, and of some that do not.
func union(a, b *listing, f func(path string, sa, sb state)) {
	merge("", a.root, b.root, func(path string, ia, ib *item) bool {
		var sa, sb state
		if ia != nil {
			sa = ia.state
		}
		if ib != nil {
			sb = ib.state
		}
		f(path, sa, sb)
		return true
	})
}

// waiting is a directory whose own path was told and whose content was not:
// "a-b" comes between "a" and "a/b".
type waiting struct {
	path string
	a, b *node
}

// merge walks two directories, either of which may be nil, in the order of
// path bytes, until f says false. An item is nil where the path is absent. What
// is alike in both is passed over.
func merge(path string, a, b *node, f func(path string, ia, ib *item) bool) bool {
	var as, bs []item
	if a != nil {
		as = a.items
	}
	if b != nil {
		bs = b.items
	}
	var later []waiting // the one to be told first is the last
	flush := func(before string) bool {
		for len(later) > 0 {
			w := later[len(later)-1]
			if before != "" && before < w.path+"/" {
				return true
			}
			later = later[:len(later)-1]
			if !merge(w.path, w.a, w.b, f) {
				return false
			}
		}
		return true
	}
	for len(as) > 0 || len(bs) > 0 {
		var ia, ib *item
		if len(as) > 0 && (len(bs) == 0 || as[0].name <= bs[0].name) {
			ia = &as[0]
		}
		if len(bs) > 0 && (len(as) == 0 || bs[0].name <= as[0].name) {
			ib = &bs[0]
		}
		var w waiting
		name := ""
		if ia != nil {
			name, w.a, as = ia.name, ia.sub, as[1:]
		}
		if ib != nil {
			name, w.b, bs = ib.name, ib.sub, bs[1:]
		}
		alike := w.a == nil && w.b == nil || w.a != nil && w.b != nil && w.a.sameAs(w.b)
		if alike && ia != nil && ib != nil && ia.state == ib.state {
			continue
		}
		w.path = fsys.Join(path, name)
		if !flush(w.path) || !f(w.path, ia, ib) {
			return false
		}
		if !alike {
			later = append(later, w)
		}
	}
	return flush("")
}

// named gives the entries with a last name, in no order.
func (l *listing) named(name string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) { l.root.named("", name, yield) }
}

func (n *node) named(path, name string, yield func(*entry) bool) bool {
	if it := n.item(name); it != nil && !yield(&entry{fsys.Join(path, name), it.state, it.size, it.stored}) {
		return false
	}
	for i := range n.items {
		if sub := n.items[i].sub; sub != nil && !sub.named(fsys.Join(path, n.items[i].name), name, yield) {
			return false
		}
	}
	return true
}
