package opstream

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/segments"
)

const sectorBytes = 512

// disk is a file system in memory that knows which bytes and names would
// survive a power cut. Its faults are set by hook.
type simDisk struct {
	mu      sync.Mutex
	names   map[string]*node    // as a process sees them
	durable map[string]*node    // as they are after a power cut at this moment
	pending map[string][]nameOp // by directory: in order, not durable yet
	// hook, when set, is asked before each operation. An error fails it; for
	// a write, n bytes are written all the same.
	hook func(op, path string, size int) (n int, err error)
	// lies makes Sync and SyncDir return without doing anything.
	lies bool
	// tally counts what the power cuts up to this disk did.
	tally tally
}

type node struct {
	dir     bool
	data    []byte // as a process sees it
	durable []byte // as of the last sync
	// dropped are the sectors a sync failed on: as a kernel does, they are
	// shown as they were written and are clean, so that no later sync writes
	// them, until they are written again.
	dropped map[int]bool
}

// tally counts files by what a power cut did to their sectors since the last
// sync: some lost and some not, a later one kept without an earlier one, one
// that was never written and reads as zeros.
type tally struct{ cuts, torn, reordered, zeroed int }

type nameOp struct {
	path string
	node *node // nil: removed
}

func newDisk() *simDisk {
	root := &node{dir: true}
	return &simDisk{
		names:   map[string]*node{"/": root},
		durable: map[string]*node{"/": root},
		pending: map[string][]nameOp{},
	}
}

func (d *simDisk) ask(op, path string, size int) (int, error) {
	if d.hook == nil {
		return size, nil
	}
	return d.hook(op, path, size)
}

func (d *simDisk) set(path string, n *node) {
	parent := filepath.Dir(path)
	d.pending[parent] = append(d.pending[parent], nameOp{path, n})
	if n == nil {
		delete(d.names, path)
	} else {
		d.names[path] = n
	}
}

func (d *simDisk) Mkdir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.ask("mkdir", path, 0); err != nil {
		return err
	}
	if d.names[filepath.Dir(path)] == nil {
		return fs.ErrNotExist
	}
	if d.names[path] != nil {
		return fs.ErrExist
	}
	d.set(path, &node{dir: true})
	return nil
}

func (d *simDisk) ReadDir(path string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.names[path]; n == nil || !n.dir {
		return nil, fs.ErrNotExist
	}
	var out []string
	for name := range d.names {
		if name != path && filepath.Dir(name) == path {
			out = append(out, filepath.Base(name))
		}
	}
	return out, nil
}

func (d *simDisk) Open(path string, flag int) (durable.File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if flag&(os.O_CREATE|os.O_TRUNC) != 0 {
		if _, err := d.ask("create", path, 0); err != nil {
			return nil, err
		}
	}
	n := d.names[path]
	if n == nil {
		if flag&os.O_CREATE == 0 || d.names[filepath.Dir(path)] == nil {
			return nil, fs.ErrNotExist
		}
		n = &node{}
		d.set(path, n)
	}
	if flag&os.O_TRUNC != 0 {
		n.data = nil
	}
	return &diskFile{d, n, path}, nil
}

func (d *simDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.ask("rename", to, 0); err != nil {
		return err
	}
	n := d.names[from]
	if n == nil {
		return fs.ErrNotExist
	}
	d.set(to, n)
	d.set(from, nil)
	return nil
}

func (d *simDisk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.ask("remove", path, 0); err != nil {
		return err
	}
	if d.names[path] == nil {
		return fs.ErrNotExist
	}
	d.set(path, nil)
	return nil
}

func (d *simDisk) SyncDir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.ask("syncdir", path, 0); err != nil {
		return err
	}
	if n := d.names[path]; n == nil || !n.dir {
		return fs.ErrNotExist
	}
	if !d.lies {
		d.settle(path, len(d.pending[path]))
	}
	return nil
}

// settle makes the first n pending name operations of a directory durable.
func (d *simDisk) settle(dir string, n int) {
	for _, op := range d.pending[dir][:n] {
		if op.node == nil {
			delete(d.durable, op.path)
		} else {
			d.durable[op.path] = op.node
		}
	}
	d.pending[dir] = d.pending[dir][n:]
}

// powerCut returns a disk as it may come back: of each directory any number of
// the pending name operations, of each file any sectors since its last sync,
// old or new, unwritten ones as zeros, its size anything between.
func (d *simDisk) powerCut(rng *rand.Rand) *simDisk {
	d.mu.Lock()
	defer d.mu.Unlock()
	dirs := make([]string, 0, len(d.pending))
	for dir := range d.pending {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		d.settle(dir, rng.IntN(len(d.pending[dir])+1))
	}
	paths := make([]string, 0, len(d.durable))
	for path := range d.durable {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	out := newDisk()
	out.tally = d.tally
	out.tally.cuts++
	for _, path := range paths {
		if path == "/" || out.names[filepath.Dir(path)] == nil {
			continue
		}
		n := d.durable[path]
		data := n.durable
		if !n.dir {
			data = n.survivors(rng, &out.tally)
		}
		fresh := &node{dir: n.dir, data: data, durable: slices.Clone(data)}
		out.names[path], out.durable[path] = fresh, fresh
	}
	return out
}

// survivors mixes a file's durable and newer sectors.
func (n *node) survivors(rng *rand.Rand, count *tally) []byte {
	lo, hi := len(n.durable), len(n.data)
	if lo > hi {
		lo, hi = hi, lo
	}
	size := lo
	switch rng.IntN(3) {
	case 0:
		size = len(n.data)
	case 1:
		size = lo + rng.IntN(hi-lo+1)
	case 2:
		size = len(n.durable)
	}
	out := make([]byte, (size+sectorBytes-1)/sectorBytes*sectorBytes)
	kept, lost, reordered, zeroed := 0, 0, false, false
	for at := 0; at < len(out); at += sectorBytes {
		from := n.data
		if rng.IntN(2) == 0 || n.dropped[at/sectorBytes] {
			from = n.durable // past its end: a sector that was never written
		}
		if at < len(from) {
			copy(out[at:at+sectorBytes], from[at:])
		}
		switch newer := sector(n.data, at); {
		case bytes.Equal(newer, sector(n.durable, at)):
		case bytes.Equal(newer, out[at:at+sectorBytes]):
			kept++
			reordered = reordered || lost > 0
		default:
			lost++
			zeroed = zeroed || at >= len(n.durable) && at < size
		}
	}
	count.torn += b2i(kept > 0 && lost > 0)
	count.reordered += b2i(reordered)
	count.zeroed += b2i(zeroed)
	return out[:size]
}

// sector returns the sector of a file at an offset, with zeros past its end.
func sector(data []byte, at int) []byte {
	out := make([]byte, sectorBytes)
	if at < len(data) {
		copy(out, data[at:])
	}
	return out
}

// sync makes what is not dropped durable. The file's size becomes durable, too.
func (n *node) sync() {
	durable := slices.Clone(n.data)
	for i := range n.dropped {
		if at := i * sectorBytes; at < len(durable) {
			copy(durable[at:], sector(n.durable, at))
		}
	}
	n.durable = durable
}

// drop is what a failed sync leaves: no sector that it should have written will
// be written any more.
func (n *node) drop() {
	for at := 0; at < len(n.data); at += sectorBytes {
		if !bytes.Equal(sector(n.data, at), sector(n.durable, at)) {
			if n.dropped == nil {
				n.dropped = map[int]bool{}
			}
			n.dropped[at/sectorBytes] = true
		}
	}
}

type diskFile struct {
	d    *simDisk
	n    *node
	path string
}

func (f *diskFile) ReadAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if off >= int64(len(f.n.data)) {
		return 0, io.EOF
	}
	n := copy(p, f.n.data[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (f *diskFile) WriteAt(p []byte, off int64) (int, error) {
	f.d.mu.Lock()
	n, err := f.d.ask("write", f.path, len(p))
	if grow := int(off) + n - len(f.n.data); grow > 0 && n > 0 {
		f.n.data = append(f.n.data, make([]byte, grow)...)
	}
	if n > 0 {
		copy(f.n.data[off:], p[:n])
		for i := int(off) / sectorBytes; i*sectorBytes < int(off)+n; i++ {
			delete(f.n.dropped, i)
		}
	}
	f.d.mu.Unlock()
	return n, err
}

func (f *diskFile) Truncate(size int64) error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.ask("truncate", f.path, int(size)); err != nil {
		return err
	}
	if int(size) <= len(f.n.data) {
		f.n.data = slices.Clone(f.n.data[:size])
	} else {
		f.n.data = append(f.n.data, make([]byte, int(size)-len(f.n.data))...)
	}
	return nil
}

func (f *diskFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if _, err := f.d.ask("sync", f.path, 0); err != nil {
		f.n.drop()
		return err
	}
	if !f.d.lies {
		f.n.sync()
	}
	return nil
}

func (f *diskFile) Size() (int64, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	return int64(len(f.n.data)), nil
}

func (f *diskFile) Close() error { return nil }

// segments lists the disk's segment files, ascending.
func (d *simDisk) segments() []string {
	var out []string
	for path := range d.names {
		if strings.HasSuffix(path, segments.Suffix) {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

var errInjected = errors.New("injected fault")
