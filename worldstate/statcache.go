package worldstate

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

// The stat cache is what the last save knew of one world in one store: its
// listing with the stat each hash was taken under. It is derived: any doubt (a
// checksum, a version, another world, an object gone from the store) drops it
// whole and costs a full read.
//
// The racy rule: a file whose newest time stamp is not older than the moment
// it was read by the clock's granularity could change again without a new
// stamp; its stamp is marked, and the next scan reads it again.

// cacheMagic begins a cache file and names its version.
const cacheMagic = "anamnesis-statcache 3\n"

const ()

// knowledge is a listing all of whose content the store holds, as a scan saw
// it, and the rules it was scanned under.
type knowledge struct {
	root  *tree.Node
	repo  *usergit.Repository
	packs []string // the store's, when it was last sure to hold everything
	// unsaved counts the files looked at since the cache file was written.
	unsaved int
}

func (k *knowledge) listing() *tree.Listing {
	if k.root == nil {
		return nil
	}
	return &tree.Listing{Root: k.root}
}

// The cache file is rewritten at once, and not at Close, when so many files were
// looked at anew that reading them again would cost a killed process's successor
// more than a few rewritings: cacheEvery, and one in cacheShare, since the whole
// file is written each time.
const (
	cacheEvery = 512
	cacheShare = 8
)

// forget makes the next scan read everything.
func (w *tracker) forget() error {
	w.knows = &knowledge{}
	if err := os.Remove(w.cache); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("drop the stat cache: %w", err)
	}
	return nil
}

// see scans from what is known: everything, or what the watcher says changed.
func (w *tracker) see(ctx context.Context, root *fsys.Root, pack *objects.Writer) (*scanned, error) {
	w.trust()
	known := w.knows
	if known.root == nil {
		known = nil
	}
	if err := w.watchRoot(root); err != nil {
		return nil, err
	}
	var marks *mark
	drained := 0
	if w.watch.on() {
		marks = w.watch.begin(pack != nil)
		drained = w.watch.drained
	}
	sc, err := w.scan(ctx, root, known, marks, pack)
	if err != nil {
		return nil, err
	}
	if !sc.whole && len(sc.links) > 0 {
		if sc, err = w.seeLinks(ctx, root, sc, pack); err != nil {
			return nil, err
		}
	}
	sc.drained = drained
	if w.watch.on() && sc.whole {
		w.watch.prune()
		w.checkWatcher(known, sc)
	}
	return sc, nil
}

// watchRoot begins to watch the world, where that is asked for, and ends the
// watching of a directory that stands no more at the world's path.
func (w *tracker) watchRoot(root *fsys.Root) error {
	if !w.opts.Watch {
		return nil
	}
	if w.watch.on() {
		now, err := root.Stamp()
		if err != nil || w.watch.of(now) {
			return err
		}
		w.watch.end("another directory stands at its path")
		w.watch = nil
	}
	if w.watch != nil {
		return nil
	}
	err := root.Open()
	if err == nil {
		w.watch = newWatching(root.Fd, w.dir)
	}
	return err
}

// seeLinks looks again where a scan by marks found a file that now has more
// names than were known.
func (w *tracker) seeLinks(ctx context.Context, root *fsys.Root, sc *scanned, pack *objects.Writer) (*scanned, error) {
	var marks mark
	if !markLinks(sc.Root, sc.links, &marks) {
		return sc, nil
	}
	again, err := w.scan(ctx, root, &knowledge{root: sc.Root, repo: sc.repo}, &marks, pack)
	if err != nil {
		return nil, err
	}
	again.changed += sc.changed
	again.unheld += sc.unheld
	return again, nil
}

// checkWatcher compares a whole scan with what the watcher has told.
func (w *tracker) checkWatcher(known *knowledge, sc *scanned) {
	if known == nil || w.watch.lost || !known.repo.SameRules(sc.repo) {
		return
	}
	if path := w.watch.missed(known.root, sc.Root); path != "" {
		w.watch.end(fmt.Sprintf("a change of %q was not told", path))
		sc.notes = append(sc.notes, Skip{Path: path, Reason: "the watcher missed its change and is off from now on: the world is scanned"})
	}
}

// trust reads the cache at first use, and drops what is known where the store
// no longer has all of it.
func (w *tracker) trust() {
	if w.knows == nil {
		w.knows = w.loadCache()
	}
	packs := w.objects.PackNames()
	if w.knows.root == nil || slices.Equal(w.knows.packs, packs) {
		return
	}
	for _, name := range w.knows.packs {
		if _, still := slices.BinarySearch(packs, name); !still {
			w.packLost = true // the parent may have gone with it
			if !hasAll(w.objects, w.knows.root) {
				w.knows = &knowledge{}
			}
			break
		}
	}
	w.knows.packs = packs
}

// hasAll asks for every object of a listing, and forgets what was said of its
// trees: they are asked for again when they are needed.
func hasAll(s *objects.Store, n *tree.Node) bool {
	n.Held = false
	for i := range n.Items {
		if it := &n.Items[i]; it.Sub != nil {
			if !hasAll(s, it.Sub) {
				return false
			}
		} else if !s.Has(it.Hash) {
			return false
		}
	}
	return true
}

// learn takes a scan whose content has become durable for the next one to
// start from.
func (w *tracker) learn(sc *scanned) error {
	sc.Root.Hold()
	if w.watch.on() {
		w.watch.learnt(sc)
	}
	k := w.knows
	k.root, k.repo, k.packs, k.unsaved = sc.Root, sc.repo, w.objects.PackNames(), k.unsaved+sc.changed
	if w.knows.unsaved < max(cacheEvery, sc.Files()/cacheShare) {
		return nil
	}
	return w.storeCache()
}

// behind reports whether the cache file lacks what a scan has learnt.
func (w *tracker) behind() bool { return w.knows != nil && w.knows.unsaved > 0 }

// loadCache reads the cache; an empty one when there is none to trust.
func (w *tracker) loadCache() *knowledge {
	data, err := os.ReadFile(w.cache)
	if err != nil {
		return &knowledge{}
	}
	k, err := decodeCache(data)
	if err != nil {
		return &knowledge{}
	}
	return k
}

// storeCache replaces the cache file. It is not synced: a torn one fails its
// checksum. The lock is held.
func (w *tracker) storeCache() error {
	tmp, err := os.CreateTemp(filepath.Dir(w.cache), fsys.TempPrefix)
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(encodeCache(w.knows))
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), w.cache)
	}
	if err == nil {
		w.knows.unsaved = 0
	}
	return err
}

// cacheEncoder writes a cache file: the magic, the packs, the sources of the
// rules, the root directory, and a checksum of it all. Numbers are varints,
// strings have their length before them.
type cacheEncoder struct{ b []byte }

func encodeCache(k *knowledge) []byte {
	e := cacheEncoder{make([]byte, 0, len(cacheMagic)+k.root.Sum.Files*100)}
	e.b = append(e.b, cacheMagic...)
	e.uint(uint64(len(k.packs)))
	for _, p := range k.packs {
		e.str(p)
	}
	e.sources(k.repo)
	e.uint(uint64(len(k.repo.Nested)))
	for _, d := range k.repo.NestedDirs() {
		e.str(d)
		e.sources(k.repo.Nested[d])
	}
	e.node(k.root)
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

func decodeCache(data []byte) (*knowledge, error) {
	n := len(data) - crc32.Size
	if n < len(cacheMagic) || !bytes.HasPrefix(data, []byte(cacheMagic)) {
		return nil, errBadCache
	}
	if crc32.Checksum(data[:n], crc32.MakeTable(crc32.Castagnoli)) != binary.BigEndian.Uint32(data[n:]) {
		return nil, errBadCache
	}
	// One string for all names: they are cut out of it.
	d := cacheDecoder{b: string(data[len(cacheMagic):n])}
	k := &knowledge{}
	for range d.count() {
		k.packs = append(k.packs, d.str())
	}
	k.repo = d.sources()
	for range d.count() {
		dir := d.str()
		k.repo.Nest(dir, d.sources())
	}
	k.root = d.node(0)
	if d.bad || len(d.b) != 0 {
		return nil, errBadCache
	}
	return k, nil
}

// cacheDecoder reads fields until the first that does not fit.
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

// count reads a number of things to come, each at least one byte long.
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

// sources reads of a repository what it was read from, and no more.
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
