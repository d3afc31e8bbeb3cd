package objects

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// index is a version 2 pack index in memory: 28 bytes for each object.
type index struct {
	N    int         // objects
	Pack gitfmt.Hash // the pack's checksum
	data []byte      // the whole file
}

const (
	indexTables  = 8
	IndexEntries = indexTables + 4*256
	IndexEnd     = 2 * sha1.Size // the checksums of the pack and of the index
	far          = 1 << 31       // larger offsets are in a separate table
)

// OpenPackIndex reads and checks an index.
func OpenPackIndex(path string) (*index, error) {
	f, err := fsys.OpenFile(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	bad := func(what string) error { return fmt.Errorf("pack index %s: %s", path, what) }
	if len(data) < IndexEntries+IndexEnd || !bytes.HasPrefix(data, []byte("\xfftOc\x00\x00\x00\x02")) {
		return nil, bad("not a version 2 index")
	}
	body := data[:len(data)-sha1.Size]
	if sum := sha1.Sum(body); !bytes.Equal(sum[:], data[len(body):]) {
		return nil, bad("wrong checksum")
	}
	x := &index{data: data, Pack: gitfmt.Hash(data[len(data)-IndexEnd:][:sha1.Size])}
	for b := range 256 {
		if x.upTo(b) < x.N {
			return nil, bad("unsorted")
		}
		x.N = x.upTo(b)
	}
	rest := len(data) - (IndexEntries + 28*x.N + IndexEnd)
	if rest < 0 {
		return nil, bad("cut short")
	}
	for i := range x.N {
		if off := x.word(24*x.N + 4*i); off >= far && int(off-far) >= rest/8 {
			return nil, bad("an offset beyond its table")
		}
	}
	return x, nil
}

// word returns the number at a distance from the first entry.
func (x *index) word(at int) uint32 { return binary.BigEndian.Uint32(x.data[IndexEntries+at:]) }

// upTo returns how many ids begin with a byte of at most b.
func (x *index) upTo(b int) int { return int(binary.BigEndian.Uint32(x.data[indexTables+4*b:])) }

func (x *index) id(i int) gitfmt.Hash { return gitfmt.Hash(x.data[IndexEntries+20*i:][:20]) }

// Position returns an object's number in the index.
func (x *index) Position(h gitfmt.Hash) (int, bool) {
	lo := 0
	if h[0] > 0 {
		lo = x.upTo(int(h[0]) - 1)
	}
	i, ok := sort.Find(x.upTo(int(h[0]))-lo, func(i int) int { return bytes.Compare(h[:], x.data[IndexEntries+20*(lo+i):][:20]) })
	return lo + i, ok
}

// Find returns an object's offset in the pack.
func (x *index) Find(h gitfmt.Hash) (int64, bool) {
	i, ok := x.Position(h)
	if !ok {
		return 0, false
	}
	return x.Offset(i), true
}

// Offset returns the offset of the i-th object in the pack.
func (x *index) Offset(i int) int64 {
	off := x.word(24*x.N + 4*i)
	if off < far {
		return int64(off)
	}
	return int64(binary.BigEndian.Uint64(x.data[IndexEntries+28*x.N+8*int(off-far):]))
}

func (x *index) item(i int) gitfmt.PackItem {
	return gitfmt.PackItem{Hash: x.id(i), Off: x.Offset(i), Crc: x.word(20*x.N + 4*i)}
}

// Items returns all objects, sorted by id.
func (x *index) Items() []gitfmt.PackItem {
	out := make([]gitfmt.PackItem, x.N)
	for i := range out {
		out[i] = x.item(i)
	}
	return out
}

// Lengths returns the size of each object in a pack of the given size, by its number.
func (x *index) Lengths(size int64) []int64 {
	order := make([]int, x.N)
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(x.Offset(b), x.Offset(a)) })
	out, end := make([]int64, x.N), size-sha1.Size
	for _, i := range order {
		out[i] = end - x.Offset(i)
		end = x.Offset(i)
	}
	return out
}
