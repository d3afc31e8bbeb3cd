package worldstate

import (
	"bytes"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"anamnesis/worldstate/internal/fsys"
)

// worldTree gives the world id of a listing with the root tree of that id, and
// the manifest, nil when the listing needs none.
func worldTree(l *listing) (id hash, root, manifest []byte) {
	var extra *treeItem
	if manifest = encodeManifest(l); manifest != nil {
		extra = &treeItem{"100644", manifestName, hashObject(blobObject, manifest)}
	}
	root = l.root.encode(extra)
	return hashObject(treeObject, root), root, manifest
}

// worldID is worldTree without the objects.
func worldID(l *listing) hash {
	id, _, _ := worldTree(l)
	return id
}

// buildTrees gives put the git trees of a listing that the store is not known
// to hold, several at once where there are many, and then the manifest and the
// root. A directory with nothing captured in it has no tree of its own; the
// manifest holds it.
func buildTrees(l *listing, put func(h hash, t objectType, data []byte) error) (hash, error) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var batch []*node
	flush := func() {
		list := batch
		batch = nil
		group.Go(func() error {
			for _, n := range list {
				if err := put(n.tree, treeObject, n.encode(nil)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for n := range l.root.unheld() {
		if batch = append(batch, n); len(batch) == treeBatch {
			flush()
		}
	}
	if len(batch) > 0 {
		flush()
	}
	if err := group.Wait(); err != nil {
		return hash{}, err
	}
	id, root, manifest := worldTree(l)
	if manifest != nil {
		if err := put(hashObject(blobObject, manifest), blobObject, manifest); err != nil {
			return hash{}, err
		}
	}
	return id, put(id, treeObject, root)
}

// treeBatch is how many trees are worth handing to another goroutine.
const treeBatch = 64

// unheld gives the directories beneath n whose trees the store may lack.
func (n *node) unheld() iter.Seq[*node] {
	return func(yield func(*node) bool) { n.eachUnheld(yield) }
}

func (n *node) eachUnheld(yield func(*node) bool) bool {
	for i := range n.items {
		sub := n.items[i].sub
		if sub == nil || sub.held || sub.tree.isZero() {
			continue
		}
		if !sub.eachUnheld(yield) || !yield(sub) {
			return false
		}
	}
	return true
}

// hold marks that the store has all trees beneath, durably.
func (n *node) hold() {
	if n.held {
		return
	}
	n.held = true
	for i := range n.items {
		if sub := n.items[i].sub; sub != nil {
			sub.hold()
		}
	}
}

// encode gives the directory's git tree, with one more entry if extra is not
// nil. Names stand in git's order: a directory's as if it ended in a slash.
func (n *node) encode(extra *treeItem) []byte {
	list := make([]treeItem, 0, len(n.items)+1)
	size := 0
	for i := range n.items {
		it := &n.items[i]
		h := it.hash
		if it.kind == kindDir {
			if h = it.sub.tree; h.isZero() {
				continue
			}
		}
		list = append(list, treeItem{it.gitMode(), storedBase(it.name, it.stored), h})
		size += len(list[len(list)-1].name) + 28
	}
	if extra != nil {
		list = append(list, *extra)
	}
	return encodeTree(list, size)
}

func encodeTree(items []treeItem, size int) []byte {
	if !slices.IsSortedFunc(items, treeOrder) {
		slices.SortFunc(items, treeOrder)
	}
	out := make([]byte, 0, size)
	for i := range items {
		it := &items[i]
		out = append(out, it.mode...)
		out = append(out, ' ')
		out = append(out, it.name...)
		out = append(out, 0)
		out = append(out, it.hash[:]...)
	}
	return out
}

// treeItem is one entry of a git tree.
type treeItem struct {
	mode string
	name string
	hash hash
}

const treeMode = "40000"

// treeOrder is git's order of the names in a tree.
func treeOrder(a, b treeItem) int {
	n := min(len(a.name), len(b.name))
	if c := strings.Compare(a.name[:n], b.name[:n]); c != 0 {
		return c
	}
	return int(a.byteAt(n)) - int(b.byteAt(n))
}

func (t *treeItem) byteAt(i int) byte {
	switch {
	case i < len(t.name):
		return t.name[i]
	case t.mode == treeMode:
		return '/'
	}
	return 0
}

func decodeTree(data []byte) ([]treeItem, error) {
	var items []treeItem
	for len(data) > 0 {
		sp := bytes.IndexByte(data, ' ')
		nul := bytes.IndexByte(data, 0)
		if sp < 1 || nul < sp+2 || len(data) < nul+21 {
			return nil, fmt.Errorf("cut short")
		}
		it := treeItem{mode: string(data[:sp]), name: string(data[sp+1 : nul])}
		copy(it.hash[:], data[nul+1:])
		items = append(items, it)
		data = data[nul+21:]
	}
	return items, nil
}

// gitlinkMode is the mode of a submodule in a user's own commit: no object of this
// store.
const gitlinkMode = "160000"

// maxTreeDepth bounds the nesting of a tree read from a store.
const maxTreeDepth = 4096

// loadTree reads a snapshot's whole listing, verifying every tree it reads.
// What no save of ours could have written is corruption. Directories that are
// alike in like, a listing at hand or nil, are taken from there unread.
func (s *objectStore) loadTree(root hash, like *listing) (*listing, error) {
	t := treeLoader{s: s, m: &manifest{usual: gitModes()}}
	items, err := t.read(root, "the world's root tree")
	if err != nil {
		return nil, err
	}
	for i, it := range items {
		if it.name != manifestName {
			continue
		}
		text, err := s.read(it.hash, blobObject, manifestName)
		if err != nil {
			return nil, err
		}
		if t.m, err = decodeManifest(text); err != nil {
			return nil, fmt.Errorf("tree %s: %w: %w", root, ErrCorrupt, err)
		}
		items = slices.Delete(items, i, i+1)
		break
	}
	t.index()
	var near *node
	if like != nil {
		near = like.root
	}
	n, err := t.node("", "", items, near, 0)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", root, err)
	}
	if t.placed != len(t.m.empty) {
		return nil, fmt.Errorf("tree %s: %w: an empty directory of its manifest has no parent", root, ErrCorrupt)
	}
	return &listing{n}, nil
}

// treeLoader walks one snapshot's trees.
type treeLoader struct {
	s      *objectStore
	m      *manifest
	empty  map[string][]string // directory → empty ones in it
	said   map[string]bool     // directories above a line of the manifest
	placed int                 // of the manifest's empty directories
}

func (t *treeLoader) read(h hash, path string) ([]treeItem, error) {
	data, err := t.s.read(h, treeObject, path)
	if err != nil {
		return nil, err
	}
	items, err := decodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w: %w", h, ErrCorrupt, err)
	}
	return items, nil
}

// index prepares the manifest for looking up by directory.
func (t *treeLoader) index() {
	t.empty, t.said = make(map[string][]string), make(map[string]bool)
	note := func(path string) {
		for d := fsys.Dir(path); !t.said[d]; d = fsys.Dir(d) {
			if t.said[d] = true; d == "" {
				break
			}
		}
	}
	for path := range t.m.empty {
		t.empty[fsys.Dir(path)] = append(t.empty[fsys.Dir(path)], fsys.Base(path))
		note(path)
	}
	for path := range t.m.modes {
		note(path)
	}
	for stored := range t.m.names { // stored paths: taken for true ones, that says too much at worst
		note(stored)
	}
}

// node makes a directory's node of its tree and its lines in the manifest.
func (t *treeLoader) node(path, stored string, list []treeItem, near *node, depth int) (*node, error) {
	items := make([]item, 0, len(list)+len(t.empty[path]))
	for _, raw := range list {
		it, err := t.item(path, stored, raw, near, depth)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	for _, name := range t.empty[path] {
		p := fsys.Join(path, name)
		it := item{name: name, state: state{kind: kindDir, perm: t.m.empty[p]}}
		t.placed++
		// Standing in no tree, its stored name is in the manifest alone.
		if alt := storedName(name); t.m.names[fsys.Join(stored, alt)] == name {
			it.stored = alt
		}
		var err error
		if it.sub, err = t.node(p, fsys.Join(stored, storedBase(name, it.stored)), nil, nil, depth+1); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(items); i++ {
		if items[i].name == items[i-1].name {
			return nil, fmt.Errorf("%w: %q stands twice", ErrCorrupt, fsys.Join(path, items[i].name))
		}
	}
	n := seal(items, nil)
	n.held = true
	return n, nil
}

func (t *treeLoader) item(path, stored string, raw treeItem, near *node, depth int) (item, error) {
	it := item{name: raw.name}
	storedPath := fsys.Join(stored, raw.name)
	if name, ok := t.m.names[storedPath]; ok {
		it.name, it.stored = name, raw.name
	}
	p := fsys.Join(path, it.name)
	if !fsys.ValidName(it.name) || depth > maxTreeDepth {
		return it, fmt.Errorf("entry %q: %w: no save writes such a name", storedPath, ErrCorrupt)
	}
	switch raw.mode {
	case treeMode:
		it.state = state{kind: kindDir, perm: t.m.usual[classDir]}
	case "100644":
		it.state = state{kind: kindFile, perm: t.m.usual[classFile], hash: raw.hash}
	case "100755":
		it.state = state{kind: kindFile, perm: t.m.usual[classExec], hash: raw.hash}
	case "120000":
		it.state = state{kind: kindLink, hash: raw.hash}
	default:
		return it, fmt.Errorf("entry %q: %w: mode %s", storedPath, ErrCorrupt, raw.mode)
	}
	if perm, ok := t.m.modes[p]; ok && it.kind != kindLink {
		it.perm = perm
	}
	if it.kind != kindDir {
		return it, nil
	}
	var beside *node
	if near != nil {
		if o := near.item(it.name); o != nil && o.sub != nil {
			beside = o.sub
			if beside.tree == raw.hash && beside.held && beside.sum.plain(t.m.usual) && !t.said[p] && !t.said[storedPath] {
				it.sub = beside
				return it, nil
			}
		}
	}
	list, err := t.read(raw.hash, p)
	if err == nil {
		it.sub, err = t.node(p, storedPath, list, beside, depth+1)
	}
	return it, err
}
