package tree

import (
	"cmp"
	"iter"
	"slices"
	"sort"
	"strings"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Listing is a whole world: every path except the root, each directory with its own entry. It
// is immutable. Listings of similar worlds share the nodes of equal directories.
type Listing struct{ Root *Node }

// Node is one directory of a listing with everything beneath. Seal makes it; afterwards only
// Held changes.
type Node struct {
	Items []Item      // by name
	Tree  gitfmt.Hash // the git tree, without a manifest; zero if there are no files beneath
	Sum   summary
	Held  bool      // the store has the trees of everything beneath; guarded by World.mu
	Seen  *Sighting // nil for a directory that no scan saw
}

// Item is one name in a directory.
type Item struct {
	Name string
	State
	// Stored is the name in the git tree, if it differs from Name (see StoredName).
	Stored string
	Size   int64 // of a file scanned; 0 when unknown
	Sub    *Node // of a directory; never nil there
}

// summary counts what is beneath a directory, without the directory itself.
type summary struct {
	Files int     // files and links
	odd   int     // names with a Stored name, and directories without files beneath
	modes []modeN // sorted
	seenSummary
}

// modeN counts the entries of one class that have one mode.
type modeN struct {
	class class
	perm  uint32
	n     int
}

// class is a group of entries that share a usual mode.
type class uint8

const (
	classFile class = iota
	classExec
	classDir
	classes
)

// class returns the class of a file or directory; a link has none.
func (s State) class() class {
	switch {
	case s.Kind == KindDir:
		return classDir
	case s.Perm&0o100 != 0:
		return classExec
	}
	return classFile
}

// Entry is one path of a listing. Paths are relative to the world, slash-separated, and any
// bytes.
type Entry struct {
	Path string
	State
	size   int64 // of a file scanned; 0 when unknown
	stored string
}

// Seal makes a node of items, which must be sorted by name. The node keeps them.
func Seal(items []Item, s *Sighting) *Node {
	n := SealAs(gitfmt.Hash{}, items, s)
	if n.Sum.Files > 0 {
		n.Tree = gitfmt.HashObject(gitfmt.TreeObject, n.encode(nil))
	}
	return n
}

// SealAs is Seal for a known git tree id.
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
	n.Sum.addSighting(n)
	return n
}

func (s *summary) add(o *summary) {
	s.Files += o.Files
	s.odd += o.odd
	s.Said += o.Said
	s.Ignored += o.Ignored
	for _, m := range o.modes {
		s.count(m)
	}
}

func (s *summary) count(m modeN) {
	i, ok := slices.BinarySearchFunc(s.modes, m, func(a, b modeN) int {
		return cmp.Or(int(a.class)-int(b.class), int(a.perm)-int(b.perm))
	})
	if ok {
		s.modes[i].n += m.n
	} else {
		s.modes = slices.Insert(s.modes, i, m)
	}
}

// plain reports whether everything beneath has the usual modes and needs no line in a manifest,
// so that the git tree is complete.
func (s *summary) plain(u usualModes) bool {
	return s.odd == 0 && !slices.ContainsFunc(s.modes, func(m modeN) bool { return m.perm != u[m.class] })
}

// equalBeneath reports whether two directories are certainly equal beneath, by their summaries.
func (n *Node) equalBeneath(o *Node) bool {
	if n == o {
		return true
	}
	if n.Tree != o.Tree || n.Sum.odd > 0 || o.Sum.odd > 0 || len(n.Sum.modes) != len(o.Sum.modes) {
		return false
	}
	for i, m := range n.Sum.modes {
		// Where a class has two modes, equal counts do not tell which entry has which mode.
		if m != o.Sum.modes[i] || i > 0 && m.class == n.Sum.modes[i-1].class {
			return false
		}
	}
	return true
}

// Index returns a name's index in Items, -1 if it is absent.
func (n *Node) Index(name string) int {
	i := sort.Search(len(n.Items), func(i int) bool { return n.Items[i].Name >= name })
	if i < len(n.Items) && n.Items[i].Name == name {
		return i
	}
	return -1
}

// Item returns a name's item, nil if it is absent.
func (n *Node) Item(name string) *Item {
	if i := n.Index(name); i >= 0 {
		return &n.Items[i]
	}
	return nil
}

// Walk returns the directory that contains a path and the index there, -1 if the path is
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

// At returns the state of a path; the zero state if it is absent.
func (l *Listing) At(path string) State {
	if n, i := l.Walk(path); i >= 0 {
		return n.Items[i].State
	}
	return State{}
}

// Find returns a path's entry, nil if it is absent.
func (l *Listing) Find(path string) *Entry {
	n, i := l.Walk(path)
	if i < 0 {
		return nil
	}
	it := &n.Items[i]
	return &Entry{path, it.State, it.Size, it.Stored}
}

// Files counts the entries that are not directories.
func (l *Listing) Files() int { return l.Root.Sum.Files }

// Empty reports whether the listing has no entries.
func (l *Listing) Empty() bool { return len(l.Root.Items) == 0 }

// All returns every entry, sorted by path.
func (l *Listing) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		merge("", nil, l.Root, func(path string, _, it *Item) bool {
			return yield(&Entry{path, it.State, it.Size, it.Stored})
		})
	}
}

func Empty() *Listing { return &Listing{Seal(nil, nil)} }

// NewListing makes a listing of entries in any order. If a path occurs twice, the last wins.
// Entries without a parent directory are dropped.
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

// ChangedPaths returns, sorted, the files and links that differ, and the paths at which one
// listing has a directory and the other something else.
func ChangedPaths(a, b *Listing) []string {
	var paths []string
	Union(a, b, func(path string, sa, sb State) {
		files := (sa.Absent() || !sa.IsDir()) && (sb.Absent() || !sb.IsDir())
		dirAndOther := sa.IsDir() != sb.IsDir() && !sa.Absent() && !sb.Absent()
		if sa != sb && files || dirAndOther {
			paths = append(paths, path)
		}
	})
	slices.Sort(paths)
	return paths
}

// Union calls f for the paths of a or b, sorted, with the state in each. It skips what is
// beneath equal directories: f is called for every path that differs and for some that do not.
func Union(a, b *Listing, f func(path string, sa, sb State)) {
	merge("", a.Root, b.Root, func(path string, ia, ib *Item) bool {
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

// waiting is a directory whose path was reported and whose content was not: "a-b" is between
// "a" and "a/b".
type waiting struct {
	path string
	a, b *Node
}

// merge walks two directories, either of which may be nil, sorted by path, until f returns
// false. An item is nil if the path is absent. Equal subtrees are skipped.
func merge(path string, a, b *Node, f func(path string, ia, ib *Item) bool) bool {
	var as, bs []Item
	if a != nil {
		as = a.Items
	}
	if b != nil {
		bs = b.Items
	}
	var later []waiting // a stack: the next to report is the last
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
		alike := w.a == nil && w.b == nil || w.a != nil && w.b != nil && w.a.equalBeneath(w.b)
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

// Dirs calls f for a directory at a path, and for those beneath if f returns true.
func (n *Node) Dirs(path string, f func(path string, n *Node) bool) {
	if !f(path, n) {
		return
	}
	for i := range n.Items {
		if sub := n.Items[i].Sub; sub != nil {
			sub.Dirs(fsys.Join(path, n.Items[i].Name), f)
		}
	}
}
