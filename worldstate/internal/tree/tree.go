// Package tree represents a directory tree in memory (Listing) and converts it to and from git
// trees and a manifest. It also holds the ignore rules frozen in a snapshot.
package tree

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// Root returns the world id of a listing, its root tree, and its manifest, nil if it needs
// none.
func Root(l *Listing) (id gitfmt.Hash, root, manifest []byte) {
	var extra *gitfmt.TreeItem
	if manifest = encodeManifest(l); manifest != nil {
		sum := gitfmt.HashObject(gitfmt.BlobObject, manifest)
		extra = &gitfmt.TreeItem{Mode: "100644", Name: ManifestName, Hash: sum}
	}
	root = l.Root.encode(extra)
	return gitfmt.HashObject(gitfmt.TreeObject, root), root, manifest
}

// ID returns the world id of a listing.
func ID(l *Listing) gitfmt.Hash {
	id, _, _ := Root(l)
	return id
}

// Build passes to put the git trees of a listing that the store may lack, concurrently if there
// are many, then the manifest and the root. A directory without files has no tree; the manifest
// records it.
func Build(l *Listing, put func(h gitfmt.Hash, t gitfmt.ObjectType, data []byte) error) (gitfmt.Hash, error) {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	var batch []*Node
	flush := func() {
		list := batch
		batch = nil
		group.Go(func() error {
			for _, n := range list {
				if err := put(n.Tree, gitfmt.TreeObject, n.encode(nil)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	l.Root.Dirs("", func(path string, n *Node) bool {
		if path == "" {
			return true // its tree may need a manifest
		}
		if n.Held || n.Tree.IsZero() {
			return false
		}
		if batch = append(batch, n); len(batch) == treeBatch {
			flush()
		}
		return true
	})
	if len(batch) > 0 {
		flush()
	}
	if err := group.Wait(); err != nil {
		return gitfmt.Hash{}, err
	}
	id, root, manifest := Root(l)
	if manifest != nil {
		if err := put(gitfmt.HashObject(gitfmt.BlobObject, manifest), gitfmt.BlobObject, manifest); err != nil {
			return gitfmt.Hash{}, err
		}
	}
	return id, put(id, gitfmt.TreeObject, root)
}

// treeBatch is the number of trees that one goroutine encodes.
const treeBatch = 64

// MarkHeld marks that the store durably holds all trees beneath.
func (n *Node) MarkHeld() {
	n.Dirs("", func(_ string, n *Node) bool {
		was := n.Held
		n.Held = true
		return !was
	})
}

// encode returns the directory's git tree, with one more entry if extra is not nil. Names are
// in git's order: directories compare as if their names ended in a slash.
func (n *Node) encode(extra *gitfmt.TreeItem) []byte {
	list := make([]gitfmt.TreeItem, 0, len(n.Items)+1)
	size := 0
	for i := range n.Items {
		it := &n.Items[i]
		h := it.Hash
		if it.Kind == KindDir {
			if h = it.Sub.Tree; h.IsZero() {
				continue
			}
		}
		list = append(list, gitfmt.TreeItem{Mode: it.gitMode(), Name: cmp.Or(it.Stored, it.Name), Hash: h})
		size += len(list[len(list)-1].Name) + 28
	}
	if extra != nil {
		list = append(list, *extra)
	}
	return gitfmt.EncodeTree(list, size)
}

// Load reads a snapshot's listing and verifies every tree it reads. A tree that no save could
// have written is corruption. Directories equal to those in like, which may be nil, are taken
// from there without reading them.
func Load(s *objects.Store, root gitfmt.Hash, like *Listing) (*Listing, error) {
	t := treeLoader{s: s, m: &manifest{usual: gitModes()}}
	items, err := s.Tree(root, "the world's root tree")
	if err != nil {
		return nil, err
	}
	for i, it := range items {
		if it.Name != ManifestName {
			continue
		}
		text, err := s.Read(it.Hash, gitfmt.BlobObject, ManifestName)
		if err != nil {
			return nil, err
		}
		if t.m, err = DecodeManifest(text); err != nil {
			return nil, fmt.Errorf("tree %s: %w: %w", root, gitfmt.ErrCorrupt, err)
		}
		items = slices.Delete(items, i, i+1) // the manifest is no file of the world
		break
	}
	t.index()
	var near *Node
	if like != nil {
		near = like.Root
	}
	n, err := t.node("", "", items, near, 0)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w", root, err)
	}
	if t.placed != len(t.m.empty) {
		return nil, fmt.Errorf("tree %s: %w: an empty directory of its manifest has no parent", root, gitfmt.ErrCorrupt)
	}
	return &Listing{n}, nil
}

type treeLoader struct {
	s      *objects.Store
	m      *manifest
	empty  map[string][]string // directory → the empty directories in it
	said   map[string]bool     // ancestors of the manifest's paths
	placed int                 // counts the manifest's empty directories found
}

// index prepares the manifest for lookups by directory.
func (t *treeLoader) index() {
	t.empty, t.said = make(map[string][]string), make(map[string]bool)
	note := func(path string) {
		for d := fsys.Dir(path); !t.said[d]; d = fsys.Dir(d) {
			t.said[d] = true // Dir("") is "", which ends the loop
		}
	}
	for path := range t.m.empty {
		t.empty[fsys.Dir(path)] = append(t.empty[fsys.Dir(path)], fsys.Base(path))
		note(path)
	}
	for path := range t.m.Modes {
		note(path)
	}
	for stored := range t.m.Names { // a stored path counts as a true one; at worst a directory is read in vain
		note(stored)
	}
}

// node builds a directory's node from its tree and its lines in the manifest.
func (t *treeLoader) node(path, stored string, list []gitfmt.TreeItem, near *Node, depth int) (*Node, error) {
	items := make([]Item, 0, len(list)+len(t.empty[path]))
	for _, raw := range list {
		it, err := t.item(path, stored, raw, near, depth)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	for _, name := range t.empty[path] {
		p := fsys.Join(path, name)
		it := Item{Name: name, State: State{Kind: KindDir, Perm: t.m.empty[p]}}
		t.placed++
		// It is in no tree, so that its stored name is only in the manifest.
		if alt := StoredName(name); t.m.Names[fsys.Join(stored, alt)] == name {
			it.Stored = alt
		}
		var err error
		if it.Sub, err = t.node(p, fsys.Join(stored, cmp.Or(it.Stored, name)), nil, nil, depth+1); err != nil {
			return nil, err
		}
		items = append(items, it)
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(items); i++ {
		if items[i].Name == items[i-1].Name {
			return nil, fmt.Errorf("%w: %q occurs twice", gitfmt.ErrCorrupt, fsys.Join(path, items[i].Name))
		}
	}
	n := Seal(items, nil)
	n.Held = true // its trees were read from the store
	return n, nil
}

func (t *treeLoader) item(path, stored string, raw gitfmt.TreeItem, near *Node, depth int) (Item, error) {
	it := Item{Name: raw.Name}
	storedPath := fsys.Join(stored, raw.Name)
	if name, ok := t.m.Names[storedPath]; ok {
		it.Name, it.Stored = name, raw.Name
	}
	p := fsys.Join(path, it.Name)
	if !fsys.ValidName(it.Name) || depth > gitfmt.MaxTreeDepth {
		return it, fmt.Errorf("entry %q: %w: no save writes such a name", storedPath, gitfmt.ErrCorrupt)
	}
	switch raw.Mode {
	case gitfmt.TreeMode:
		it.State = State{Kind: KindDir, Perm: t.m.usual[classDir]}
	case "100644":
		it.State = State{Kind: KindFile, Perm: t.m.usual[classFile], Hash: raw.Hash}
	case "100755":
		it.State = State{Kind: KindFile, Perm: t.m.usual[classExec], Hash: raw.Hash}
	case "120000":
		it.State = State{Kind: KindLink, Hash: raw.Hash}
	default:
		return it, fmt.Errorf("entry %q: %w: mode %s", storedPath, gitfmt.ErrCorrupt, raw.Mode)
	}
	if perm, ok := t.m.Modes[p]; ok && it.Kind != KindLink {
		it.Perm = perm
	}
	if it.Kind != KindDir {
		return it, nil
	}
	var beside *Node
	if near != nil {
		if o := near.Item(it.Name); o != nil && o.Sub != nil {
			beside = o.Sub
			// An equal subtree of the listing beside is shared, unless the manifest names a path in it.
			said := t.said[p] || t.said[storedPath]
			if beside.Tree == raw.Hash && beside.Held && beside.Sum.plain(t.m.usual) && !said {
				it.Sub = beside
				return it, nil
			}
		}
	}
	list, err := t.s.Tree(raw.Hash, p)
	if err == nil {
		it.Sub, err = t.node(p, storedPath, list, beside, depth+1)
	}
	return it, err
}
