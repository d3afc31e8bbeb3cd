package scan

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

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
const CacheMagic = "anamnesis-statcache 3\n"

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

// Look scans everything, or what the watcher reports as changed.
func (w *Tracker) Look(ctx context.Context, root *fsys.Root, pack *objects.Writer) (*Scanned, error) {
	w.loadKnowledge()
	known := w.knows
	if known.Root == nil {
		known = nil
	}
	if err := w.watchRoot(root); err != nil {
		return nil, err
	}
	var marks *mark
	drained := 0
	if w.Watch.on() {
		marks = w.Watch.begin(pack != nil)
		drained = w.Watch.drained
	}
	sc, err := w.Scan(ctx, root, known, marks, pack)
	if err != nil {
		return nil, err
	}
	if !sc.whole && sc.linked { // a write under the new name causes no event at the old one
		w.Watch.epoch++
		changed := sc.changed
		if sc, err = w.Scan(ctx, root, &Knowledge{Root: sc.Root, Repo: sc.repo}, nil, pack); err != nil {
			return nil, err
		}
		sc.changed += changed
	}
	sc.drained = drained
	if w.Watch.on() && sc.whole {
		w.Watch.prune()
	}
	return sc, nil
}

// watchRoot starts the watcher if Options.Watch is set, and stops one of a directory that is no
// longer at the world's path.
func (w *Tracker) watchRoot(root *fsys.Root) error {
	if !w.opts.Watch {
		return nil
	}
	if w.Watch.on() {
		now, err := fsys.Fstat(root.Fd)
		if err != nil || w.Watch.of(now) {
			return err
		}
		w.Watch.end("another directory is at its path")
		w.Watch = nil
	}
	if w.Watch == nil {
		w.Watch = newWatching(root.Fd)
	}
	return nil
}

// loadKnowledge reads the cache at first use, and drops what is known if the store no longer holds all
// of it.
func (w *Tracker) loadKnowledge() {
	if w.knows == nil {
		w.knows = w.loadCache()
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
			all = all && (it.Sub != nil || s.Has(it.Hash))
		}
		return all
	})
	return all
}

// Learn records a scan whose content is durable as the basis of the next one.
func (w *Tracker) Learn(sc *Scanned) error {
	sc.Root.Hold()
	if w.Watch.on() {
		w.Watch.recordScan(sc)
	}
	k := w.knows
	k.Root, k.Repo, k.Packs, k.unsaved = sc.Root, sc.repo, w.objects.PackNames(), k.unsaved+sc.changed
	if w.knows.unsaved < max(cacheEvery, sc.Files()/cacheShare) {
		return nil
	}
	return w.StoreCache()
}

// Behind reports whether the cache file lacks results of scans.
func (w *Tracker) Behind() bool { return w.knows != nil && w.knows.unsaved > 0 }

// loadCache reads the cache. It is empty if there is no valid one.
func (w *Tracker) loadCache() *Knowledge {
	data, err := os.ReadFile(w.Cache)
	if err != nil {
		return &Knowledge{}
	}
	k, err := DecodeCache(data)
	if err != nil {
		return &Knowledge{}
	}
	return k
}

// StoreCache replaces the cache file. The file is not synced: a torn one fails its checksum.
// The caller holds the store's lock.
func (w *Tracker) StoreCache() error {
	tmp, err := os.CreateTemp(filepath.Dir(w.Cache), fsys.TempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(EncodeCache(w.knows))
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), w.Cache)
	}
	if err == nil {
		w.knows.unsaved = 0
	}
	return err
}

// cacheEncoder encodes a cache file: the magic, the packs, the sources of the rules, the root
// directory, and a checksum. Numbers are varints; strings are preceded by their length.
type cacheEncoder struct{ b []byte }

func EncodeCache(k *Knowledge) []byte {
	e := cacheEncoder{make([]byte, 0, len(CacheMagic)+k.Root.Sum.Files*100)}
	e.b = append(e.b, CacheMagic...)
	e.uint(uint64(len(k.Packs)))
	for _, p := range k.Packs {
		e.str(p)
	}
	e.sources(k.Repo)
	e.uint(uint64(len(k.Repo.Nested)))
	for _, d := range k.Repo.NestedDirs() {
		e.str(d)
		e.sources(k.Repo.Nested[d])
	}
	e.node(k.Root)
	return binary.BigEndian.AppendUint32(e.b, crc32.Checksum(e.b, crc32.MakeTable(crc32.Castagnoli)))
}

func (e *cacheEncoder) sources(r *usergit.Repository) {
	e.uint(uint64(len(r.Sources)))
	for i := range r.Sources {
		e.str(r.Sources[i].Path)
		e.sight(&r.Sources[i].Sight)
	}
}

func (e *cacheEncoder) uint(v uint64) { e.b = binary.AppendUvarint(e.b, v) }

func (e *cacheEncoder) str(s string) {
	e.uint(uint64(len(s)))
	e.b = append(e.b, s...)
}

func (e *cacheEncoder) flags(list ...bool) {
	var b byte
	for i, f := range list {
		if f {
			b |= 1 << i
		}
	}
	e.b = append(e.b, b)
}

func (e *cacheEncoder) sight(s *fsys.Sight) {
	e.flags(s.Racy, s.OnlyTracked)
	for _, v := range []uint64{uint64(s.Size), uint64(s.Mtime), uint64(s.Ctime), s.Ino, s.Dev, uint64(s.Mode), s.Nlink} {
		e.uint(v)
	}
}

func (e *cacheEncoder) node(n *tree.Node) {
	s := n.Seen
	e.b = append(e.b, n.Tree[:]...)
	e.sight(&s.Dir)
	e.flags(s.Frozen, s.Foreign)
	e.str(s.Fault)
	e.str(s.RulesNote)
	e.sight(&s.RuleSight)
	e.str(s.Rules.Base)
	e.uint(uint64(len(s.Rules.Patterns)))
	for _, p := range s.Rules.Patterns {
		e.str(p.String())
	}
	e.uint(uint64(len(s.Others)))
	for i := range s.Others {
		e.str(s.Others[i].Name)
		e.str(s.Others[i].Why)
		e.flags(s.Others[i].IsDir)
	}
	e.uint(uint64(len(n.Items)))
	for i := range n.Items {
		it := &n.Items[i]
		e.str(it.Name)
		e.str(it.Stored)
		e.uint(uint64(it.Kind))
		e.uint(uint64(it.Perm))
		e.sight(&s.Items[i])
		if it.Kind == tree.KindDir {
			e.node(it.Sub)
			continue
		}
		e.uint(uint64(it.Size))
		e.b = append(e.b, it.Hash[:]...)
	}
}

var errBadCache = errors.New("not a stat cache")

func DecodeCache(data []byte) (*Knowledge, error) {
	n := len(data) - crc32.Size
	if n < len(CacheMagic) || !bytes.HasPrefix(data, []byte(CacheMagic)) {
		return nil, errBadCache
	}
	if crc32.Checksum(data[:n], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[n:]) {
		return nil, errBadCache
	}
	// All names are substrings of one string.
	d := cacheDecoder{b: string(data[len(CacheMagic):n])}
	k := &Knowledge{}
	for range d.count() {
		k.Packs = append(k.Packs, d.str())
	}
	k.Repo = d.sources()
	for range d.count() {
		dir := d.str()
		k.Repo.Nest(dir, d.sources())
	}
	k.Root = d.node(0)
	if d.bad || len(d.b) != 0 {
		return nil, errBadCache
	}
	return k, nil
}

// cacheDecoder decodes fields until the first invalid one.
type cacheDecoder struct {
	b   string
	bad bool
}

func (d *cacheDecoder) fail() { d.bad, d.b = true, "" }

func (d *cacheDecoder) uint() uint64 {
	var v uint64
	for i := 0; i < len(d.b) && i < binary.MaxVarintLen64; i++ {
		c := d.b[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			d.b = d.b[i+1:]
			return v
		}
	}
	d.fail()
	return 0
}

// count decodes the number of elements that follow, each at least one byte long.
func (d *cacheDecoder) count() int {
	v := d.uint()
	if v > uint64(len(d.b)) {
		d.fail()
		return 0
	}
	return int(v)
}

func (d *cacheDecoder) take(n int) string {
	if n > len(d.b) {
		d.fail()
		return ""
	}
	out := d.b[:n]
	d.b = d.b[n:]
	return out
}

func (d *cacheDecoder) str() string { return d.take(d.count()) }

func (d *cacheDecoder) flags() (a, b bool) {
	f := d.take(1)
	if f == "" {
		return false, false
	}
	return f[0]&1 != 0, f[0]&2 != 0
}

// sources decodes the sources of a repository, which is all that the cache records of it.
func (d *cacheDecoder) sources() *usergit.Repository {
	r := &usergit.Repository{}
	for range d.count() {
		r.Sources = append(r.Sources, fsys.Source{Path: d.str(), Sight: d.sight()})
	}
	return r
}

func (d *cacheDecoder) sight() (s fsys.Sight) {
	s.Racy, s.OnlyTracked = d.flags()
	s.Size, s.Mtime, s.Ctime = int64(d.uint()), int64(d.uint()), int64(d.uint())
	s.Ino, s.Dev, s.Mode, s.Nlink = d.uint(), d.uint(), uint32(d.uint()), d.uint()
	return s
}

func (d *cacheDecoder) node(depth int) *tree.Node {
	if depth > gitfmt.MaxTreeDepth {
		d.fail()
		return tree.Seal(nil, nil)
	}
	var treeID gitfmt.Hash
	copy(treeID[:], d.take(len(treeID)))
	s := &tree.Sighting{Dir: d.sight()}
	s.Frozen, s.Foreign = d.flags()
	s.Fault, s.RulesNote, s.RuleSight, s.Rules.Base = d.str(), d.str(), d.sight(), d.str()
	for range d.count() {
		p, ok := ignore.ParsePattern(d.str())
		if !ok {
			d.fail()
		}
		s.Rules.Patterns = append(s.Rules.Patterns, p)
	}
	for range d.count() {
		o := tree.Other{Name: d.str(), Why: d.str()}
		o.IsDir, _ = d.flags()
		s.Others = append(s.Others, o)
	}
	count := d.count()
	items := make([]tree.Item, 0, count)
	s.Items = make([]fsys.Sight, 0, count)
	for range count {
		it := tree.Item{Name: d.str(), Stored: d.str()}
		it.Kind, it.Perm = tree.Kind(d.uint()), uint32(d.uint())
		s.Items = append(s.Items, d.sight())
		switch it.Kind {
		case tree.KindDir:
			it.Sub = d.node(depth + 1)
		case tree.KindFile, tree.KindLink:
			it.Size = int64(d.uint())
			copy(it.Hash[:], d.take(len(it.Hash)))
		default:
			d.fail()
		}
		if d.bad || len(items) > 0 && items[len(items)-1].Name >= it.Name {
			d.fail()
			return tree.Seal(nil, nil)
		}
		items = append(items, it)
	}
	return tree.SealAs(treeID, items, s)
}
