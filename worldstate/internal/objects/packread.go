package objects

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zlib"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Pack reads one pack. Safe for concurrent use.
type Pack struct {
	Name string // of the index, without its directory
	Path string // of the .pack

	f        *os.File
	bytes    int64
	sum      gitfmt.Hash       // the pack's checksum, by the index
	items    []gitfmt.PackItem // by id
	measured sync.Once         // sets sizes
	sizes    []int64           // of the items; see Entry
}

// OpenPack opens a pack, and checks its index and its end.
func OpenPack(idxPath string) (*Pack, error) {
	items, sum, err := ReadPackIndex(idxPath)
	if err != nil {
		return nil, err
	}
	p := &Pack{Name: fsys.Base(idxPath), Path: strings.TrimSuffix(idxPath, ".idx") + ".pack", sum: sum, items: items}
	if p.f, err = fsys.OpenFile(p.Path); err != nil {
		return nil, err
	}
	if err := p.checkEnd(); err != nil {
		p.f.Close()
		return nil, err
	}
	return p, nil
}

// checkEnd compares the pack's checksum, its last bytes, with the index's.
func (p *Pack) checkEnd() error {
	info, err := p.f.Stat()
	if err != nil {
		return err
	}
	p.bytes = info.Size()
	var end gitfmt.Hash
	if _, err := p.f.ReadAt(end[:], max(p.bytes-int64(len(end)), 0)); err != nil {
		return fmt.Errorf("pack %s: cut short", p.Path)
	}
	if end != p.sum {
		return fmt.Errorf("pack %s: its checksum is not the one in its index", p.Path)
	}
	return nil
}

// position returns an object's number among the entries.
func (p *Pack) position(h gitfmt.Hash) (int, bool) {
	return slices.BinarySearchFunc(p.items, h, func(e gitfmt.PackItem, h gitfmt.Hash) int {
		return bytes.Compare(e.Hash[:], h[:])
	})
}

// Find returns an object's offset in the pack.
func (p *Pack) Find(h gitfmt.Hash) (int64, bool) {
	i, ok := p.position(h)
	if !ok {
		return 0, false
	}
	return p.items[i].Off, true
}

// Entry returns an object's entry.
func (p *Pack) Entry(h gitfmt.Hash) (Entry, bool) {
	i, ok := p.position(h)
	if !ok {
		return Entry{}, false
	}
	p.measured.Do(p.measure)
	return Entry{p.items[i], p.sizes[i]}, true
}

func (p *Pack) measure() {
	p.sizes = make([]int64, len(p.items))
	order := make([]int, len(p.items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(p.items[b].Off, p.items[a].Off) })
	end := p.bytes - sha1.Size
	for _, i := range order {
		p.sizes[i] = end - p.items[i].Off
		end = p.items[i].Off
	}
}

// Entries returns all objects in the order of the pack.
func (p *Pack) Entries() []Entry {
	p.measured.Do(p.measure)
	out := make([]Entry, len(p.items))
	for i, it := range p.items {
		out[i] = Entry{it, p.sizes[i]}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Off, b.Off) })
	return out
}

// maxHeaderBytes is enough for an object's header and the first bytes of its stream.
const maxHeaderBytes = 48

// header reads the header of the object at an offset, and returns what follows it there.
func (p *Pack) header(off int64) (h gitfmt.PackHeader, rest []byte, err error) {
	b := make([]byte, maxHeaderBytes)
	n, err := p.f.ReadAt(b, off)
	if err != nil && err != io.EOF {
		return h, nil, fmt.Errorf("read %s: %w", p.Path, err)
	}
	r := bytes.NewReader(b[:n])
	h, err = gitfmt.ReadHeader(r)
	return h, b[n-r.Len() : n], err
}

// KindAt returns the type under which the object at an offset is stored.
func (p *Pack) KindAt(off int64) (gitfmt.ObjectType, error) {
	h, _, err := p.header(off)
	return h.Kind, err
}

// Intact verifies the checksum of an object's bytes in the pack and returns the stored type. If
// copyTo is not nil, the bytes are also written there.
func (p *Pack) Intact(it Entry, copyTo io.Writer, buf []byte) (gitfmt.ObjectType, error) {
	if it.Size <= 0 {
		return 0, fmt.Errorf("read %s: no object can be at offset %d", p.Path, it.Off)
	}
	r := io.NewSectionReader(p.f, it.Off, it.Size)
	var kind gitfmt.ObjectType
	crc := uint32(0)
	for left := r.Size(); left > 0; {
		n, err := io.ReadFull(r, buf[:min(left, int64(len(buf)))])
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", p.Path, err)
		}
		if kind == 0 { // an entry's first byte holds its type
			kind = gitfmt.ObjectType(buf[0] >> 4 & 7)
		}
		crc = crc32.Update(crc, crc32.IEEETable, buf[:n])
		if copyTo != nil {
			if _, err := copyTo.Write(buf[:n]); err != nil {
				return 0, err
			}
		}
		left -= int64(n)
	}
	if crc != it.Crc {
		return kind, errors.New("its bytes in the pack have a wrong checksum")
	}
	return kind, nil
}

// inflater decompresses one object. Close returns it to its pool.
type inflater struct {
	pool *sync.Pool
	in   *bufio.Reader
	z    io.ReadCloser
}

func (z *inflater) Read(b []byte) (int, error) { return z.z.Read(b) }

func (z *inflater) Close() error {
	err := z.z.Close()
	z.in.Reset(nil)
	z.pool.Put(z)
	return err
}

const inflateBuffer = 16 << 10

// open starts to read the object at an offset. The header is as stored, also that of a delta.
func (p *Pack) open(off int64, pool *sync.Pool) (gitfmt.PackHeader, io.ReadCloser, error) {
	src := io.NewSectionReader(p.f, off, 1<<62)
	z, reused := pool.Get().(*inflater)
	if reused {
		z.in.Reset(src)
	} else {
		z = &inflater{pool: pool, in: bufio.NewReaderSize(src, inflateBuffer)}
	}
	h, err := gitfmt.ReadHeader(z.in)
	if err == nil {
		if z.z == nil {
			z.z, err = zlib.NewReader(z.in)
		} else {
			err = z.z.(zlib.Resetter).Reset(z.in, nil)
		}
	}
	if err != nil {
		return gitfmt.PackHeader{}, nil, fmt.Errorf("read %s at %d: %w", p.Path, off, err)
	}
	return h, z, nil
}

func (p *Pack) Close() { p.f.Close() }
