package tree

import (
	"iter"
	"slices"
	"sort"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Listing is a whole world: every path but the root, each directory with its
// own entry. It is immutable; listings of worlds that are alike share the
// nodes of the directories in which they are.
type Listing struct{ Root *Node }

// Node is one directory of a listing with all that lies beneath. It is made by
// Seal and not changed afterwards, Held apart.
type Node struct {
	Items []Item      // by name
	Tree  gitfmt.Hash // the git tree, without a manifest; zero where nothing is captured beneath
	Sum   summary
	Held  bool      // the store has the trees of everything beneath; guarded by World.mu
	Seen  *Sighting // nil for a directory that no scan saw
}

// Item is one name in a directory.
type Item struct {
	Name string
	State
	// Stored is the name in the git tree, when it is not the true one (see
	// storedName).
	Stored string
	Size   int64 // of a file scanned; 0 when unknown
	Sub    *Node // of a directory; never nil there
}

// summary counts what lies beneath a directory, itself left out.
type summary struct {
	Files int     // files and links
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
func (s State) class() class {
	switch {
	case s.Kind == KindDir:
		return classDir
	case s.Perm&0o100 != 0:
		return classExec
	}
	return classFile
}

// Entry is one path of a listing. Paths are relative to the world, with
// slashes, their bytes as they are.
type Entry struct {
	Path string
	State
	size   int64 // of a file scanned; 0 when unknown
	stored string
}

func storedBase(name, stored string) string {
	if stored != "" {
		return stored
	}
	return name
}

// Seal makes a node of items, which must be sorted by name and are kept.
func Seal(items []Item, s *Sighting) *Node {
	n := SealAs(gitfmt.Hash{}, items, s)
	if n.Sum.Files > 0 {
		n.Tree = gitfmt.HashObject(gitfmt.TreeObject, n.encode(nil))
	}
	return n
}

// SealAs is Seal where the git tree's id is known.
func SealAs(tree gitfmt.Hash, items []Item, s *Sighting) *Node {
	n := &Node{Tree: tree, Items: items, Seen: s}
	for i := range items {
		it := &items[i]
		if it.Stored != "" {
			n.Sum.odd++
		}
		if it.Kind == KindDir {
			if it.Sub.Sum.Files == 0 {
				n.Sum.odd++
			}
			n.Sum.add(&it.Sub.Sum)
		} else {
			n.Sum.Files++
		}
		if it.Kind != KindLink {
			n.Sum.count(modeN{it.class(), it.Perm, 1})
		}
	}
	n.Sum.addSeen(n)
	return n
}

func (s *summary) add(o *summary) {
	s.Files += o.Files
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
// known from their summaries. false: they may be.
func (n *Node) sameAs(o *Node) bool {
	if n == o {
		return true
	}
	if n.Tree != o.Tree || n.Sum.odd > 0 || o.Sum.odd > 0 || len(n.Sum.modes) != len(o.Sum.modes) {
		return false
	}
	for i, m := range n.Sum.modes {
		if m != o.Sum.modes[i] || i > 0 && m.class == n.Sum.modes[i-1].class {
			return false
		}
	}
	return true
}

// Index returns a name's place in items, -1 when it is absent.
func (n *Node) Index(name string) int {
	i := sort.Search(len(n.Items), func(i int) bool { return n.Items[i].Name >= name })
	if i < len(n.Items) && n.Items[i].Name == name {
		return i
	}
	return -1
}

// Item returns a name's item, nil when it is absent.
func (n *Node) Item(name string) *Item {
	if i := n.Index(name); i >= 0 {
		return &n.Items[i]
	}
	return nil
}

// Walk returns the directory a path lies in and its place there, -1 when it is
// absent.
func (l *Listing) Walk(path string) (*Node, int) {
	n := l.Root
	for {
		name, rest, deeper := strings.Cut(path, "/")
		i := n.Index(name)
		if i < 0 || !deeper {
			return n, i
		}
		if n.Items[i].Sub == nil {
			return n, -1
		}
		n, path = n.Items[i].Sub, rest
	}
}

// At returns the state of a path; the zero state when it is absent.
func (l *Listing) At(path string) State {
	if n, i := l.Walk(path); i >= 0 {
		return n.Items[i].State
	}
	return State{}
}

// Find returns a path's entry, nil when it is absent.
func (l *Listing) Find(path string) *Entry {
	n, i := l.Walk(path)
	if i < 0 {
		return nil
	}
	it := &n.Items[i]
	return &Entry{path, it.State, it.Size, it.Stored}
}

// Files counts what is not a directory.
func (l *Listing) Files() int { return l.Root.Sum.Files }

// Empty: nothing is in it.
func (l *Listing) Empty() bool { return len(l.Root.Items) == 0 }

// All returns every entry in the order of path bytes.
func (l *Listing) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		Merge("", nil, l.Root, func(path string, _, it *Item) bool {
			return yield(&Entry{path, it.State, it.Size, it.Stored})
		})
	}
}

func Empty() *Listing { return &Listing{Seal(nil, nil)} }

// NewListing makes a listing of entries in any order. Of a path that is
// twice the last counts; what has no parent directory is left out.
func NewListing(entries []Entry) *Listing {
	at := make(map[string][]Item)
	for _, e := range entries {
		d := fsys.Dir(e.Path)
		at[d] = append(at[d], Item{Name: fsys.Base(e.Path), State: e.State, Stored: e.stored, Size: e.size})
	}
	var build func(path string) *Node
	build = func(path string) *Node {
		items := at[path]
		slices.SortStableFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
		kept := items[:0]
		for i := range items {
			if i+1 < len(items) && items[i+1].Name == items[i].Name {
				continue
			}
			if items[i].Kind == KindDir {
				items[i].Sub = build(fsys.Join(path, items[i].Name))
			}
			kept = append(kept, items[i])
		}
		return Seal(kept, nil)
	}
	return &Listing{build("")}
}

// ChangedPaths lists the files and links that differ, sorted, and the paths at which one
// of two listings has a directory and the other something else.
func ChangedPaths(a, b *Listing) []string {
	var paths []string
	Union(a, b, func(path string, sa, sb State) {
		if sa != sb && (sa.Absent() || !sa.IsDir()) && (sb.Absent() || !sb.IsDir()) || sa.IsDir() != sb.IsDir() && !sa.Absent() && !sb.Absent() {
			paths = append(paths, path)
		}
	})
	slices.Sort(paths)
	return paths
}

// Union calls f for the paths of a or b, in the order of path bytes, with the
// state in each. It passes over what lies beneath directories that are alike,
// so f hears of every path that differs, and of some that do not.
func Union(a, b *Listing, f func(path string, sa, sb State)) {
	Merge("", a.Root, b.Root, func(path string, ia, ib *Item) bool {
		var sa, sb State
		if ia != nil {
			sa = ia.State
		}
		if ib != nil {
			sb = ib.State
		}
		f(path, sa, sb)
		return true
	})
}

// waiting is a directory whose own path was reported and whose content was not:
// "a-b" comes between "a" and "a/b".
type waiting struct {
	path string
	a, b *Node
}

// Merge walks two directories, either of which may be nil, in the order of
// path bytes, until f says false. An item is nil where the path is absent. What
// is alike in both is passed over.
func Merge(path string, a, b *Node, f func(path string, ia, ib *Item) bool) bool {
	var as, bs []Item
	if a != nil {
		as = a.Items
	}
	if b != nil {
		bs = b.Items
	}
	var later []waiting // the one to be reported first is the last
	flush := func(before string) bool {
		for len(later) > 0 {
			w := later[len(later)-1]
			if before != "" && before < w.path+"/" {
				return true
			}
			later = later[:len(later)-1]
			if !Merge(w.path, w.a, w.b, f) {
				return false
			}
		}
		return true
	}
	for len(as) > 0 || len(bs) > 0 {
		var ia, ib *Item
		if len(as) > 0 && (len(bs) == 0 || as[0].Name <= bs[0].Name) {
			ia = &as[0]
		}
		if len(bs) > 0 && (len(as) == 0 || bs[0].Name <= as[0].Name) {
			ib = &bs[0]
		}
		var w waiting
		name := ""
		if ia != nil {
			name, w.a, as = ia.Name, ia.Sub, as[1:]
		}
		if ib != nil {
			name, w.b, bs = ib.Name, ib.Sub, bs[1:]
		}
		alike := w.a == nil && w.b == nil || w.a != nil && w.b != nil && w.a.sameAs(w.b)
		if alike && ia != nil && ib != nil && ia.State == ib.State {
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

// named returns the entries with a last name, in no order.
func (l *Listing) named(name string) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) { l.Root.named("", name, yield) }
}

func (n *Node) named(path, name string, yield func(*Entry) bool) bool {
	if it := n.Item(name); it != nil && !yield(&Entry{fsys.Join(path, name), it.State, it.Size, it.Stored}) {
		return false
	}
	for i := range n.Items {
		if sub := n.Items[i].Sub; sub != nil && !sub.named(fsys.Join(path, n.Items[i].Name), name, yield) {
			return false
		}
	}
	return true
}
