package objects

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

// index reads a version 2 index of a pack. That of a large pack stays in
// its file, but for each object's place and three bytes of its id, which nearly
// always show that an object is absent; that one is there is read, and so is
// its checksum. An entry that cannot be read counts as absent, as all of a
// damaged pack does. That of a small pack, of which there may be many, is held
// whole, and no file is open. Safe for concurrent use.
type index struct {
	path string
	Src  IndexSource
	N    int         // objects
	Size int64       // of the file
	Pack gitfmt.Hash // the checksum of the pack it was made of
	fan  []uint32    // how many ids begin with at most this byte
	keys []uint16    // of each id, sorted: its bytes 1 and 2
	offs []uint32    // by position, as they are in the index

	unread atomic.Bool // an entry could not be read, and may have been called absent
}

// IndexSource is where an index is read: the open file, or its bytes.
type IndexSource interface {
	io.ReaderAt
	io.Closer
}

// HeldIndex is an index in memory.
type HeldIndex struct{ *bytes.Reader }

func (HeldIndex) Close() error { return nil }

const (
	indexTables  = 8
	IndexEntries = indexTables + 4*256
	IndexEnd     = 2 * sha1.Size // the checksums of the pack and of the index
)

// OpenPackIndex reads an index and checks it. One of at most held objects stays
// in memory.
func OpenPackIndex(path string, held int) (_ *index, err error) {
	f, err := fsys.OpenFile(path)
	if err != nil {
		return nil, err
	}
	x := &index{path: path, Src: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	x.Size = info.Size()
	idx, err := x.read()
	if err != nil {
		return nil, err
	}
	if len(idx) < IndexEntries+IndexEnd || !bytes.HasPrefix(idx, []byte("\xfftOc\x00\x00\x00\x02")) {
		return nil, fmt.Errorf("pack index %s: not a version 2 index", path)
	}
	x.fan = make([]uint32, 256)
	for b := range x.fan {
		x.fan[b] = binary.BigEndian.Uint32(idx[indexTables+4*b:])
	}
	if !slices.IsSorted(x.fan) {
		return nil, fmt.Errorf("pack index %s: unsorted", path)
	}
	x.N = int(x.fan[255])
	if len(idx) < IndexEntries+28*x.N+IndexEnd {
		return nil, fmt.Errorf("pack index %s: cut short", path)
	}
	x.Pack = gitfmt.Hash(idx[len(idx)-IndexEnd:][:sha1.Size])
	x.keys, x.offs = make([]uint16, x.N), make([]uint32, x.N)
	for i := range x.N {
		x.keys[i] = indexKey(idx[IndexEntries+20*i:])
		x.offs[i] = binary.BigEndian.Uint32(idx[IndexEntries+24*x.N+4*i:])
	}
	if x.N <= held {
		x.Src = HeldIndex{bytes.NewReader(idx)}
		f.Close()
	}
	return x, nil
}

// read returns all of the index, checked.
func (x *index) read() ([]byte, error) {
	idx := make([]byte, x.Size)
	if _, err := x.Src.ReadAt(idx, 0); err != nil {
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

// Position returns an object's place in the index.
func (x *index) Position(h gitfmt.Hash) (int, bool) {
	lo := 0
	if h[0] > 0 {
		lo = int(x.fan[h[0]-1])
	}
	key := indexKey(h[:])
	same, _ := slices.BinarySearch(x.keys[lo:x.fan[h[0]]], key)
	for i := lo + same; i < int(x.fan[h[0]]) && x.keys[i] == key; i++ {
		var id gitfmt.Hash
		if _, err := x.Src.ReadAt(id[:], IndexEntries+20*int64(i)); err != nil {
			x.unread.Store(true)
		} else if id == h {
			return i, true
		}
	}
	return 0, false
}

// Find returns an object's offset in the pack.
func (x *index) Find(h gitfmt.Hash) (int64, bool) {
	i, ok := x.Position(h)
	if !ok {
		return 0, false
	}
	off, err := x.Offset(i)
	return off, err == nil
}

// Crc returns the checksum of the i-th object's bytes in the pack.
func (x *index) Crc(i int) (uint32, error) {
	var b [4]byte
	_, err := x.Src.ReadAt(b[:], x.CrcAt(i))
	return binary.BigEndian.Uint32(b[:]), err
}

func (x *index) CrcAt(i int) int64 { return IndexEntries + 20*int64(x.N) + 4*int64(i) }

// Offset returns where in the pack the i-th object begins. Only beyond two
// gigabytes the file is asked.
func (x *index) Offset(i int) (int64, error) {
	const far = 1 << 31
	if x.offs[i] < far {
		return int64(x.offs[i]), nil
	}
	at := IndexEntries + 28*int64(x.N) + 8*int64(x.offs[i]-far)
	if at+8+IndexEnd > x.Size {
		return 0, fmt.Errorf("pack index %s: an offset beyond its end", x.path)
	}
	var b [8]byte
	if _, err := x.Src.ReadAt(b[:], at); err != nil {
		return 0, err
	}
	return int64(binary.BigEndian.Uint64(b[:])), nil
}

// Items returns all objects, in the order of their ids. What rotted in the file
// after it was opened is an error: an object must not be copied under another's
// id.
func (x *index) Items() ([]gitfmt.PackItem, error) {
	idx, err := x.read()
	if err != nil {
		return nil, err
	}
	out := make([]gitfmt.PackItem, x.N)
	for i := range out {
		off, err := x.Offset(i)
		if err != nil {
			return nil, err
		}
		out[i] = gitfmt.PackItem{Hash: gitfmt.Hash(idx[IndexEntries+20*i:][:20]), Off: off, Crc: binary.BigEndian.Uint32(idx[x.CrcAt(i):])}
	}
	return out, nil
}

// Lengths returns how many bytes each object takes in a pack of so many.
func (x *index) Lengths(size int64) (PackLengths, error) {
	type start struct {
		off int64
		i   uint32
	}
	starts := make([]start, x.N, x.N+1)
	for i := range starts {
		off, err := x.Offset(i)
		if err != nil {
			return PackLengths{}, err
		}
		starts[i] = start{off, uint32(i)}
	}
	slices.SortFunc(starts, func(a, b start) int { return cmp.Compare(a.off, b.off) })
	starts = append(starts, start{off: size - int64(len(gitfmt.Hash{}))})
	out := PackLengths{Short: make([]uint16, x.N)}
	for k, s := range starts[:x.N] {
		out.Set(s.i, starts[k+1].off-s.off)
	}
	return out, nil
}

// PackLengths is how many bytes objects take, by position: two bytes each, and
// more for the few that are long.
type PackLengths struct {
	Short []uint16 // 0: long has it
	long  map[uint32]int64
}

func (l *PackLengths) Set(i uint32, n int64) {
	if 0 < n && n <= math.MaxUint16 {
		l.Short[i] = uint16(n)
		return
	}
	if l.long == nil {
		l.long = make(map[uint32]int64)
	}
	l.long[i] = n
}

func (l *PackLengths) Of(i int) int64 {
	if n := l.Short[i]; n > 0 {
		return int64(n)
	}
	return l.long[uint32(i)]
}

func (x *index) Close() { x.Src.Close() }

// IndexBytes returns how long the pack's index is.
func (p *Pack) IndexBytes() int64 { return p.index.Size }
