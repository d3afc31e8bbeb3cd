package worldstate

import (
	"bytes"
	"fmt"
	"sort"
)

// buildTrees turns a listing into git trees, the deepest first, and gives each
// to put. The root tree's id is the world id. A directory with nothing
// captured in it has no tree of its own; the manifest holds it.
func buildTrees(l *listing, put func(h hash, t objectType, data []byte) error) (hash, error) {
	children := make(map[string][]int)
	for i := range l.entries {
		d := dir(l.entries[i].path)
		children[d] = append(children[d], i)
	}
	extra := encodeManifest(l)
	var build func(path string) (hash, bool, error)
	build = func(path string) (hash, bool, error) {
		var items []treeItem
		for _, i := range children[path] {
			e := &l.entries[i]
			item := treeItem{mode: e.gitMode(), name: e.storedBase(), hash: e.hash}
			if e.kind == kindDir {
				h, full, err := build(e.path)
				if err != nil {
					return hash{}, false, err
				}
				if !full {
					continue
				}
				item.hash = h
			}
			items = append(items, item)
		}
		if path == "" && extra != nil {
			h := hashObject(blobObject, extra)
			if err := put(h, blobObject, extra); err != nil {
				return hash{}, false, err
			}
			items = append(items, treeItem{"100644", manifestName, h})
		}
		if len(items) == 0 && path != "" {
			return hash{}, false, nil
		}
		data := encodeTree(items)
		h := hashObject(treeObject, data)
		return h, true, put(h, treeObject, data)
	}
	root, _, err := build("")
	return root, err
}

func encodeTree(items []treeItem) []byte {
	sort.Slice(items, func(i, j int) bool { return treeLess(items[i], items[j]) })
	var b bytes.Buffer
	for _, it := range items {
		b.WriteString(it.mode)
		b.WriteByte(' ')
		b.WriteString(it.name)
		b.WriteByte(0)
		b.Write(it.hash[:])
	}
	return b.Bytes()
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

// maxTreeDepth bounds the nesting of a tree read from a store.
const maxTreeDepth = 4096

// loadTree reads a snapshot's whole listing, verifying every tree on the way.
// What no save of ours could have written is corruption.
func (s *objectStore) loadTree(root hash) (*listing, error) {
	t := treeLoader{s: s, m: &manifest{usual: gitModes()}}
	data, err := s.read(root, treeObject, "the world's root tree")
	if err != nil {
		return nil, err
	}
	items, err := decodeTree(data)
	if err != nil {
		return nil, fmt.Errorf("tree %s: %w: %w", root, ErrCorrupt, err)
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
		items = append(items[:i:i], items[i+1:]...)
		break
	}
	if err := t.items("", "", items, 0); err != nil {
		return nil, err
	}
	for path, perm := range t.m.empty {
		t.out = append(t.out, entry{path: path, state: state{kind: kindDir, perm: perm}})
	}
	return t.finish(root)
}

// treeLoader walks one snapshot's trees.
type treeLoader struct {
	s   *objectStore
	m   *manifest
	out []entry
}

func (t *treeLoader) items(path, stored string, items []treeItem, depth int) error {
	for _, it := range items {
		e := entry{}
		storedPath := join(stored, it.name)
		name := it.name
		if true_, ok := t.m.names[storedPath]; ok {
			name, e.stored = true_, it.name
		}
		e.path = join(path, name)
		if !validName(name) || depth > maxTreeDepth {
			return fmt.Errorf("tree entry %q: %w: no save writes such a name", storedPath, ErrCorrupt)
		}
		switch it.mode {
		case "40000":
			e.state = state{kind: kindDir, perm: t.m.usual.dir}
		case "100644":
			e.state = state{kind: kindFile, perm: t.m.usual.file, hash: it.hash}
		case "100755":
			e.state = state{kind: kindFile, perm: t.m.usual.exec, hash: it.hash}
		case "120000":
			e.state = state{kind: kindLink, hash: it.hash}
		default:
			return fmt.Errorf("tree entry %q: %w: mode %s", storedPath, ErrCorrupt, it.mode)
		}
		if perm, ok := t.m.modes[e.path]; ok && e.kind != kindLink {
			e.perm = perm
		}
		t.out = append(t.out, e)
		if e.kind != kindDir {
			continue
		}
		data, err := t.s.read(it.hash, treeObject, e.path)
		if err != nil {
			return err
		}
		sub, err := decodeTree(data)
		if err != nil {
			return fmt.Errorf("tree %s: %w: %w", it.hash, ErrCorrupt, err)
		}
		if err := t.items(e.path, storedPath, sub, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// finish sorts the listing and checks that every path stands once, under a
// directory. Empty directories get their stored names.
func (t *treeLoader) finish(root hash) (*listing, error) {
	l := newListing(t.out)
	if len(l.index) != len(l.entries) {
		return nil, fmt.Errorf("tree %s: %w: a path stands twice", root, ErrCorrupt)
	}
	stored := storedPaths(l)
	for i := range l.entries {
		e := &l.entries[i]
		if d := dir(e.path); d != "" && l.at(d).kind != kindDir {
			return nil, fmt.Errorf("tree %s: %w: %q has no parent", root, ErrCorrupt, e.path)
		}
		if _, empty := t.m.empty[e.path]; empty && e.stored == "" {
			// an empty directory stands in no tree: its stored name is in the
			// manifest alone
			alt := join(dir(stored[i]), storedName(base(e.path)))
			if name, ok := t.m.names[alt]; ok && name == base(e.path) {
				e.stored = base(alt)
				stored = storedPaths(l)
			}
		}
	}
	return l, nil
}
