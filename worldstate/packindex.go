package worldstate

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"sync/atomic"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// packIndex reads a version 2 index of a pack. That of a large pack stays in
// its file, but for each object's place and three bytes of its id, which nearly
// always tell that an object is not there; that one is there is read, and so is
// its checksum. An entry that cannot be read counts as absent, as all of a
// damaged pack does. That of a small pack, of which there may be many, is held
// whole, and no file is open. Safe for concurrent use.
type packIndex struct {
	path string
	src  indexSource
	n    int         // objects
	size int64       // of the file
	pack gitfmt.Hash // the checksum of the pack it was made of
	fan  []uint32    // how many ids begin with at most this byte
	keys []uint16    // of each id, sorted: its bytes 1 and 2
	offs []uint32    // by position, as they stand in the index

	unread atomic.Bool // an entry could not be read, and may have been called absent
}

// indexSource is where an index is read: the open file, or its bytes.
type indexSource interface {
	io.ReaderAt
	io.Closer
}

// heldIndex is an index in memory.
type heldIndex struct{ *bytes.Reader }

func (heldIndex) Close() error { return nil }

const (
	indexTables  = 8
	indexEntries = indexTables + 4*256
	indexEnd     = 2 * sha1.Size // the checksums of the pack and of the index
)

// openPackIndex reads an index and checks it. One of at most held objects stays
// in memory.
func openPackIndex(path string, held int) (_ *packIndex, err error) {
	f, err := fsys.OpenFile(path)
	if err != nil {
		return nil, err
	}
	x := &packIndex{path: path, src: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	x.size = info.Size()
	idx, err := x.read()
	if err != nil {
		return nil, err
	}
	if len(idx) < indexEntries+indexEnd || !bytes.HasPrefix(idx, []byte("\xfftOc\x00\x00\x00\x02")) {
		return nil, fmt.Errorf("pack index %s: not a version 2 index", path)
	}
	x.fan = make([]uint32, 256)
	for b := range x.fan {
		x.fan[b] = binary.BigEndian.Uint32(idx[indexTables+4*b:])
	}
	if !slices.IsSorted(x.fan) {
		return nil, fmt.Errorf("pack index %s: unsorted", path)
	}
	x.n = int(x.fan[255])
	if len(idx) < indexEntries+28*x.n+indexEnd {
		return nil, fmt.Errorf("pack index %s: cut short", path)
	}
	x.pack = gitfmt.Hash(idx[len(idx)-indexEnd:][:sha1.Size])
	x.keys, x.offs = make([]uint16, x.n), make([]uint32, x.n)
	for i := range x.n {
		x.keys[i] = indexKey(idx[indexEntries+20*i:])
		x.offs[i] = binary.BigEndian.Uint32(idx[indexEntries+24*x.n+4*i:])
	}
	if x.n <= held {
		x.src = heldIndex{bytes.NewReader(idx)}
		f.Close()
	}
	return x, nil
}

// read gives all of the index, checked.
func (x *packIndex) read() ([]byte, error) {
	idx := make([]byte, x.size)
	if _, err := x.src.ReadAt(idx, 0); err != nil {
		return nil, fmt.Errorf("pack index %s: %w", x.path, err)
	}
	body := idx[:max(len(idx)-sha1.Size, 0)]
	if sum := sha1.Sum(body); !bytes.Equal(sum[:], idx[len(body):]) {
		return nil, fmt.Errorf("pack index %s: its bytes do not have its checksum", x.path)
	}
	return idx, nil
}

// indexKey is what memory holds of an id, beside its first byte.
func indexKey(id []byte) uint16 { return binary.BigEndian.Uint16(id[1:]) }

// position gives an object's place in the index.
func (x *packIndex) position(h gitfmt.Hash) (int, bool) {
	lo := 0
	if h[0] > 0 {
		lo = int(x.fan[h[0]-1])
	}
	key := indexKey(h[:])
	same, _ := slices.BinarySearch(x.keys[lo:x.fan[h[0]]], key)
	for i := lo + same; i < int(x.fan[h[0]]) && x.keys[i] == key; i++ {
		var id gitfmt.Hash
		if _, err := x.src.ReadAt(id[:], indexEntries+20*int64(i)); err != nil {
			x.unread.Store(true)
		} else if id == h {
			return i, true
		}
	}
	return 0, false
}

// find gives an object's offset in the pack.
func (x *packIndex) find(h gitfmt.Hash) (int64, bool) {
	i, ok := x.position(h)
	if !ok {
		return 0, false
	}
	off, err := x.offset(i)
	return off, err == nil
}

// crc gives the checksum of the i-th object's bytes in the pack.
func (x *packIndex) crc(i int) (uint32, error) {
	var b [4]byte
	_, err := x.src.ReadAt(b[:], x.crcAt(i))
	return binary.BigEndian.Uint32(b[:]), err
}

func (x *packIndex) crcAt(i int) int64 { return indexEntries + 20*int64(x.n) + 4*int64(i) }

// offset gives where in the pack the i-th object begins. Only beyond two
// gigabytes the file is asked.
func (x *packIndex) offset(i int) (int64, error) {
	const far = 1 << 31
	if x.offs[i] < far {
		return int64(x.offs[i]), nil
	}
	at := indexEntries + 28*int64(x.n) + 8*int64(x.offs[i]-far)
	if at+8+indexEnd > x.size {
		return 0, fmt.Errorf("pack index %s: an offset beyond its end", x.path)
	}
	var b [8]byte
	if _, err := x.src.ReadAt(b[:], at); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

// items gives all objects, in the order of their ids. What rotted in the file
// after it was opened is an error: an object must not be copied under another's
// id.
func (x *packIndex) items() ([]gitfmt.PackItem, error) {
	idx, err := x.read()
	if err != nil {
		return nil, err
	}
	out := make([]gitfmt.PackItem, x.n)
	for i := range out {
		off, err := x.offset(i)
		if err != nil {
			return nil, err
		}
		out[i] = gitfmt.PackItem{Hash: gitfmt.Hash(idx[indexEntries+20*i:][:20]), Off: off, Crc: binary.BigEndian.Uint32(idx[x.crcAt(i):])}
	}
	return out, nil
}

// lengths gives how many bytes each object takes in a pack of so many.
func (x *packIndex) lengths(size int64) (packLengths, error) {
	type start struct {
		off int64
		i   uint32
	}
	starts := make([]start, x.n, x.n+1)
	for i := range starts {
		off, err := x.offset(i)
		if err != nil {
			return packLengths{}, err
		}
		starts[i] = start{off, uint32(i)}
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.off, b.off) })
	starts = append(starts, start{off: size - int64(len(gitfmt.Hash{}))})
	out := packLengths{short: make([]uint16, x.n)}
	for k, s := range starts[:x.n] {
		out.set(s.i, starts[k+1].off-s.off)
	}
	return out, nil
}

// packLengths is how many bytes objects take, by position: two bytes each, and
// more for the few that are long.
type packLengths struct {
	short []uint16 // 0: long has it
	long  map[uint32]int64
}

func (l *packLengths) set(i uint32, n int64) {
	if 0 < n && n <= math.MaxUint16 {
		l.short[i] = uint16(n)
		return
	}
	if l.long == nil {
		l.long = make(map[uint32]int64)
	}
	l.long[i] = n
}

func (l *packLengths) of(i int) int64 {
	if n := l.short[i]; n > 0 {
		return int64(n)
	}
	return l.long[uint32(i)]
}

func (x *packIndex) close() { x.src.Close() }
