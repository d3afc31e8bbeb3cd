package scan

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"anamnesis/worldstate/ignore"
	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
	"anamnesis/worldstate/internal/tree"
	"anamnesis/worldstate/internal/usergit"
)

// The stat cache records what the last save knew of one world in one store: its listing with
// the stat of each hash. It is derived: in any doubt (a checksum, a version, another world, an
// object missing from the store) it is dropped as a whole, which costs a full read.
//
// The racy rule: if a file's newest time stamp is not older, by the granularity of the clock,
// than the moment of its read, the file could change again without a new stamp. Such a stamp is
// marked, and the next scan reads the file again.

// CacheMagic begins a cache file and names its version.
const CacheMagic = "anamnesis-statcache 5\n"

// Knowledge is a listing whose content is all stored, as a scan saw it, and the rules of that
// scan.
type Knowledge struct {
	Root  *tree.Node
	Repo  *usergit.Repository
	Packs []string // the store's packs when it was last known to hold everything
	// unsaved counts the files read since the cache file was written.
	unsaved int
}

// A save rewrites the cache file if at least cacheEvery files, and one in cacheShare, were read
// since it was written; otherwise Close does. After a kill, the next process reads those files
// again. The file is always written as a whole.
const (
	cacheEvery = 512
	cacheShare = 8
)

// Forget makes the next scan read everything.
func (w *Tracker) Forget() error {
	w.knows = &Knowledge{}
	if err := os.Remove(w.Cache); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("drop the stat cache: %w", err)
	}
	return nil
}

// Rescan scans everything, and reads the files that have changed since the last scan.
func (w *Tracker) Rescan(ctx context.Context, root *fsys.Root, pack *objects.Writer) (*Scanned, error) {
	w.loadKnowledge()
	known := w.knows
	if known.Root == nil {
		known = nil
	}
	return w.Scan(ctx, root, known, pack)
}

// loadKnowledge reads the cache at first use, and drops what is known if the store no longer holds all
// of it.
func (w *Tracker) loadKnowledge() {
	if w.knows == nil {
		data, err := os.ReadFile(w.Cache)
		if err == nil {
			w.knows, err = DecodeCache(data)
		}
		if err != nil {
			w.knows = &Knowledge{}
		}
	}
	packs := w.objects.PackNames()
	if w.knows.Root == nil || slices.Equal(w.knows.Packs, packs) {
		return
	}
	for _, name := range w.knows.Packs {
		if _, still := slices.BinarySearch(packs, name); !still {
			w.PackLost = true // perhaps the one with the parent commit
			if !hasAll(w.objects, w.knows.Root) {
				w.knows = &Knowledge{}
			}
			break
		}
	}
	w.knows.Packs = packs
}

// hasAll reports whether the store lists every object of a listing. It clears Held, so that
// trees are looked up again when they are needed.
func hasAll(s *objects.Store, n *tree.Node) bool {
	all := true
	n.Dirs("", func(_ string, n *tree.Node) bool {
		n.Held = false
		for i := range n.Items {
			it := &n.Items[i]
			all = all && (it.Sub != nil || s.Owns(it.Hash))
		}
		return all
	})
	return all
}

// Learn records a scan whose content is durable as the basis of the next one.
func (w *Tracker) Learn(sc *Scanned) error {
	sc.Root.MarkHeld()
	k := w.knows
	k.Root, k.Repo, k.Packs, k.unsaved = sc.Root, sc.repo, w.objects.PackNames(), k.unsaved+sc.changed
	if w.knows.unsaved < max(cacheEvery, sc.Files()/cacheShare) {
		return nil
	}
	return w.StoreCache()
}

// Behind reports whether the cache file lacks results of scans.
func (w *Tracker) Behind() bool { return w.knows != nil && w.knows.unsaved > 0 }

// StoreCache replaces the cache file. The file is not synced: a torn one fails its checksum.
// The caller holds the store's lock.
func (w *Tracker) StoreCache() error {
	tmp, err := os.CreateTemp(filepath.Dir(w.Cache), fsys.TempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(EncodeCache(w.knows))
	if err = cmp.Or(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), w.Cache)
	}
	if err == nil {
		w.knows.unsaved = 0
	}
	return err
}

// EncodeCache encodes a cache file: the magic, the packs, the sources of the rules, the root
// directory, and a checksum.
func EncodeCache(k *Knowledge) []byte {
	c := cacheCoder{out: append(make([]byte, 0, len(CacheMagic)+k.Root.Sum.Files*100), CacheMagic...)}
	c.knowledge(k)
	return binary.BigEndian.AppendUint32(c.out, crc32.Checksum(c.out, crc32.MakeTable(crc32.Castagnoli)))
}

var errBadCache = errors.New("not a stat cache")

// DecodeCache decodes a cache file. Of a repository the cache records only the sources.
func DecodeCache(data []byte) (*Knowledge, error) {
	n := len(data) - crc32.Size
	if n < len(CacheMagic) || !bytes.HasPrefix(data, []byte(CacheMagic)) {
		return nil, errBadCache
	}
	if crc32.Checksum(data[:n], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[n:]) {
		return nil, errBadCache
	}
	c := cacheCoder{decodes: true, in: string(data[len(CacheMagic):n])} // all names are substrings of one string
	k := &Knowledge{Root: &tree.Node{Seen: &tree.Sighting{}}, Repo: &usergit.Repository{}}
	c.knowledge(k)
	if c.bad || c.in != "" {
		return nil, errBadCache
	}
	return k, nil
}

// cacheCoder encodes or decodes: each method describes a part of the format once, and either
// appends the value to out, or reads it from in until the first invalid field. Numbers are
// varints; strings and lists are preceded by their length.
type cacheCoder struct {
	decodes bool
	out     []byte
	in      string
	bad     bool
}

func (c *cacheCoder) fail() { c.bad, c.in = true, "" }

func number[T ~uint8 | ~uint32 | ~uint64 | ~int64 | ~int](c *cacheCoder, v *T) {
	if !c.decodes {
		c.out = binary.AppendUvarint(c.out, uint64(*v))
		return
	}
	var n uint64
	for i := 0; i < len(c.in) && i < binary.MaxVarintLen64; i++ {
		b := c.in[i]
		n |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			*v, c.in = T(n), c.in[i+1:]
			return
		}
	}
	c.fail()
}

// list codes a list whose elements take at least a byte each.
func list[T any](c *cacheCoder, l *[]T, each func(*T)) {
	n := len(*l)
	if number(c, &n); n < 0 || c.decodes && n > len(c.in) {
		c.fail()
		return
	}
	if c.decodes && n > 0 {
		*l = make([]T, n)
	}
	for i := range *l {
		each(&(*l)[i])
	}
}

func (c *cacheCoder) str(s *string) {
	n := len(*s)
	number(c, &n)
	switch {
	case !c.decodes:
		c.out = append(c.out, *s...)
	case n < 0 || n > len(c.in):
		c.fail()
	default:
		*s, c.in = c.in[:n], c.in[n:]
	}
}

func (c *cacheCoder) hash(h *gitfmt.Hash) {
	if !c.decodes {
		c.out = append(c.out, h[:]...)
	} else if n := copy(h[:], c.in); n < len(h) {
		c.fail()
	} else {
		c.in = c.in[n:]
	}
}

func (c *cacheCoder) flag(b *bool) {
	n := uint8(0)
	if *b {
		n = 1
	}
	if number(c, &n); c.decodes {
		*b = n != 0
	}
}

func (c *cacheCoder) sight(s *fsys.Sight) {
	c.flag(&s.Racy)
	c.flag(&s.OnlyTracked)
	number(c, &s.Size)
	number(c, &s.Mtime)
	number(c, &s.Ctime)
	number(c, &s.Ino)
	number(c, &s.Dev)
	number(c, &s.Mode)
	number(c, &s.Nlink)
}

func (c *cacheCoder) knowledge(k *Knowledge) {
	list(c, &k.Packs, c.str)
	c.sources(k.Repo)
	dirs := k.Repo.NestedDirs()
	list(c, &dirs, func(dir *string) {
		if c.str(dir); c.decodes {
			k.Repo.Nest(*dir, &usergit.Repository{})
		}
		c.sources(k.Repo.Nested[*dir])
	})
	k.Root = c.node(k.Root, 0)
}

func (c *cacheCoder) sources(r *usergit.Repository) {
	list(c, &r.Sources, func(s *fsys.Source) {
		c.str(&s.Path)
		c.sight(&s.Sight)
	})
}

// node codes a directory. If it decodes, n is empty, and the result takes its place.
func (c *cacheCoder) node(n *tree.Node, depth int) *tree.Node {
	id, items, s := n.Tree, n.Items, n.Seen
	c.hash(&id)
	c.sight(&s.Dir)
	c.flag(&s.Frozen)
	c.str(&s.Fault)
	c.str(&s.RulesNote)
	c.sight(&s.RuleSight)
	c.str(&s.Rules.Base)
	list(c, &s.Rules.Patterns, func(p *ignore.Pattern) {
		text := p.String()
		if c.str(&text); c.decodes {
			var ok bool
			if *p, ok = ignore.ParsePattern(text); !ok {
				c.fail()
			}
		}
	})
	list(c, &s.Others, func(o *tree.Other) {
		c.str(&o.Name)
		c.str(&o.Why)
		c.flag(&o.IsDir)
	})
	list(c, &items, func(it *tree.Item) { c.item(it, depth) })
	list(c, &s.Items, c.sight)
	if !c.decodes {
		return n
	}
	byName := func(a, b tree.Item) int { return cmp.Or(strings.Compare(a.Name, b.Name), -1) } // no name comes twice
	if c.bad || len(s.Items) != len(items) || !slices.IsSortedFunc(items, byName) {
		c.fail()
		return tree.Seal(nil, nil)
	}
	return tree.SealAs(id, items, s)
}

func (c *cacheCoder) item(it *tree.Item, depth int) {
	c.str(&it.Name)
	c.str(&it.Stored)
	number(c, &it.Kind)
	number(c, &it.Perm)
	switch {
	case it.Kind == tree.KindDir && depth < gitfmt.MaxTreeDepth:
		if c.decodes {
			it.Sub = &tree.Node{Seen: &tree.Sighting{}}
		}
		if sub := c.node(it.Sub, depth+1); c.decodes {
			it.Sub = sub
		}
	case it.Kind == tree.KindFile || it.Kind == tree.KindLink:
		number(c, &it.Size)
		c.hash(&it.Hash)
	default:
		c.fail()
	}
}
