package worldstate

import (
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// worldTree gives the world id of a listing with the root tree of that id, and
// the manifest, nil when the listing needs none.
func worldTree(l *listing) (id gitfmt.Hash, root, manifest []byte) {
	var extra *gitfmt.TreeItem
	if manifest = encodeManifest(l); manifest != nil {
		extra = &gitfmt.TreeItem{Mode: "100644", Name: manifestName, Hash: gitfmt.HashObject(gitfmt.BlobObject, manifest)}
	}
	root = l.root.encode(extra)
	return gitfmt.HashObject(gitfmt.TreeObject, root), root, manifest
}

// worldID is worldTree without the objects.
func worldID(l *listing) gitfmt.Hash {
	id, _, _ := worldTree(l)
	return id
}

// buildTrees gives put the git trees of a listing that the store is not known
// to hold, several at once where there are many, and then the manifest and the
// root. A directory with nothing captured in it has no tree of its own; the
// manifest holds it.
func buildTrees(l *listing, put func(h gitfmt.Hash, t gitfmt.ObjectType, data []byte) error) (gitfmt.Hash, error) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var batch []*node
	flush := func() {
		list := batch
		batch = nil
		group.Go(func() error {
			for _, n := range list {
				if err := put(n.tree, gitfmt.TreeObject, n.encode(nil)); err != nil {
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
		return gitfmt.Hash{}, err
	}
	id, root, manifest := worldTree(l)
	if manifest != nil {
		if err := put(gitfmt.HashObject(gitfmt.BlobObject, manifest), gitfmt.BlobObject, manifest); err != nil {
			return gitfmt.Hash{}, err
		}
	}
	return id, put(id, gitfmt.TreeObject, root)
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
		if sub == nil || sub.held || sub.tree.IsZero() {
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
func (n *node) encode(extra *gitfmt.TreeItem) []byte {
	list := make([]gitfmt.TreeItem, 0, len(n.items)+1)
	size := 0
	for i := range n.items {
		it := &n.items[i]
		h := it.hash
		if it.kind == kindDir {
			if h = it.sub.tree; h.IsZero() {
				continue
			}
		}
		list = append(list, gitfmt.TreeItem{Mode: it.gitMode(), Name: storedBase(it.name, it.stored), Hash: h})
		size += len(list[len(list)-1].Name) + 28
	}
	if extra != nil {
		list = append(list, *extra)
	}
	return gitfmt.EncodeTree(list, size)
}

// loadTree reads a snapshot's whole listing, verifying every tree it reads.
// What no save of ours could have written is corruption. Directories that are
// alike in like, a listing at hand or nil, are taken from there unread.
func (s *objectStore) loadTree(root gitfmt.Hash, like *listing) (*listing, error) {
	t := treeLoader{s: s, m: &manifest{usual: gitModes()}}
	items, err := t.read(root, "the world's root tree")
	if err != nil {
		return nil, err
	}
	for i, it := range items {
		if it.Name != manifestName {
			continue
		}
		text, err := s.read(it.Hash, gitfmt.BlobObject, manifestName)
		if err != nil {
			return nil, err
		}
		if t.m, err = decodeManifest(text); err != nil {
			return nil, fmt.Errorf("tree %s: %w: %w", root, gitfmt.ErrCorrupt, err)
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
		return nil, fmt.Errorf("tree %s: %w: an empty directory of its manifest has no parent", root, gitfmt.ErrCorrupt)
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

func (t *treeLoader) read(h gitfmt.Hash, path string) ([]gitfmt.TreeItem, error) {
	data, err := t.s.read(h, gitfmt.TreeObject, path)
	if err != nil {
		return nil, err
	}
	items, err := gitfmt.DecodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w: %w", h, gitfmt.ErrCorrupt, err)
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
func (t *treeLoader) node(path, stored string, list []gitfmt.TreeItem, near *node, depth int) (*node, error) {
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
			return nil, fmt.Errorf("%w: %q stands twice", gitfmt.ErrCorrupt, fsys.Join(path, items[i].name))
		}
	}
	n := seal(items, nil)
	n.held = true
	return n, nil
}

func (t *treeLoader) item(path, stored string, raw gitfmt.TreeItem, near *node, depth int) (item, error) {
	it := item{name: raw.Name}
	storedPath := fsys.Join(stored, raw.Name)
	if name, ok := t.m.names[storedPath]; ok {
		it.name, it.stored = name, raw.Name
	}
	p := fsys.Join(path, it.name)
	if !fsys.ValidName(it.name) || depth > gitfmt.MaxTreeDepth {
		return it, fmt.Errorf("entry %q: %w: no save writes such a name", storedPath, gitfmt.ErrCorrupt)
	}
	switch raw.Mode {
	case gitfmt.TreeMode:
		it.state = state{kind: kindDir, perm: t.m.usual[classDir]}
	case "100644":
		it.state = state{kind: kindFile, perm: t.m.usual[classFile], hash: raw.Hash}
	case "100755":
		it.state = state{kind: kindFile, perm: t.m.usual[classExec], hash: raw.Hash}
	case "120000":
		it.state = state{kind: kindLink, hash: raw.Hash}
	default:
		return it, fmt.Errorf("entry %q: %w: mode %s", storedPath, gitfmt.ErrCorrupt, raw.Mode)
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
			if beside.tree == raw.Hash && beside.held && beside.sum.plain(t.m.usual) && !t.said[p] && !t.said[storedPath] {
				it.sub = beside
				return it, nil
			}
		}
	}
	list, err := t.read(raw.Hash, p)
	if err == nil {
		it.sub, err = t.node(p, storedPath, list, beside, depth+1)
	}
	return it, err
}
