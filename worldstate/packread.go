package worldstate

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// packFile reads one pack. Safe for concurrent use.
type packFile struct {
	name  string // of the index, without its directory
	path  string // of the .pack
	idx   []byte
	n     int
	once  sync.Once
	f     *os.File
	bytes int64
	err   error

	sorted sync.Once
	starts []int64 // where the objects begin, and where the last one ends
}

const (
	indexTables  = 8
	indexEntries = indexTables + 4*256
)

// openPack loads a version 2 index and checks it, and that the pack it belongs
// to stands beside it, whole as far as its end tells. The pack itself is opened
// for reading at first use.
func openPack(idxPath string) (*packFile, error) {
	idx, err := os.ReadFile(idxPath)
	if err != nil {
		return nil, err
	}
	p := &packFile{name: base(idxPath), path: strings.TrimSuffix(idxPath, ".idx") + ".pack", idx: idx}
	if len(idx) < indexEntries+40 || !bytes.HasPrefix(idx, []byte("\xfftOc\x00\x00\x00\x02")) {
		return nil, fmt.Errorf("pack index %s: not a version 2 index", idxPath)
	}
	p.n = int(binary.BigEndian.Uint32(idx[indexEntries-4:]))
	prev := uint32(0)
	for b := range 256 {
		if v := binary.BigEndian.Uint32(idx[indexTables+4*b:]); v < prev {
			return nil, fmt.Errorf("pack index %s: unsorted", idxPath)
		} else {
			prev = v
		}
	}
	if len(idx) < indexEntries+28*p.n+40 {
		return nil, fmt.Errorf("pack index %s: cut short", idxPath)
	}
	if sum := sha1.Sum(idx[:len(idx)-sha1.Size]); !bytes.Equal(sum[:], idx[len(idx)-sha1.Size:]) {
		return nil, fmt.Errorf("pack index %s: its bytes do not have its checksum", idxPath)
	}
	return p, p.checkEnd()
}

// checkEnd compares the pack's checksum, its last bytes, with the index's.
func (p *packFile) checkEnd() error {
	f, err := os.Open(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var end [sha1.Size]byte
	if _, err := f.ReadAt(end[:], max(info.Size()-sha1.Size, 0)); err != nil {
		return fmt.Errorf("pack %s: cut short", p.path)
	}
	if !bytes.Equal(end[:], p.idx[len(p.idx)-2*sha1.Size:len(p.idx)-sha1.Size]) {
		return fmt.Errorf("pack %s: it does not end as its index says", p.path)
	}
	return nil
}

// find gives an object's offset in the pack.
func (p *packFile) find(h hash) (int64, bool) {
	i, ok := p.position(h)
	if !ok {
		return 0, false
	}
	return p.offset(i)
}

// position gives an object's place in the index.
func (p *packFile) position(h hash) (int, bool) {
	lo := 0
	if h[0] > 0 {
		lo = int(binary.BigEndian.Uint32(p.idx[indexTables+4*(int(h[0])-1):]))
	}
	hi := int(binary.BigEndian.Uint32(p.idx[indexTables+4*int(h[0]):]))
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := bytes.Compare(p.idx[indexEntries+20*mid:][:20], h[:]); {
		case c == 0:
			return mid, true
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
}

// item gives the i-th object of the index.
func (p *packFile) item(i int) packItem {
	it := packItem{hash: hash(p.idx[indexEntries+20*i:][:20]), crc: binary.BigEndian.Uint32(p.idx[indexEntries+20*p.n+4*i:])}
	it.off, _ = p.offset(i)
	return it
}

func (p *packFile) offset(i int) (int64, bool) {
	table := indexEntries + 24*p.n
	off := binary.BigEndian.Uint32(p.idx[table+4*i:])
	if off < 1<<31 {
		return int64(off), true
	}
	far := table + 4*p.n + 8*int(off&^(1<<31))
	if far+8+40 > len(p.idx) {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(p.idx[far:])), true
}

// file opens the pack at its first use.
func (p *packFile) file() (*os.File, error) {
	p.once.Do(func() {
		if p.f, p.err = os.Open(p.path); p.err != nil {
			return
		}
		var info os.FileInfo
		if info, p.err = p.f.Stat(); p.err == nil {
			p.bytes = info.Size()
		}
	})
	return p.f, p.err
}

// size is what the pack takes on disk, without its index.
func (p *packFile) size() (int64, error) {
	_, err := p.file()
	return p.bytes, err
}

// end is where the object that begins at off ends.
func (p *packFile) end(off int64) (int64, error) {
	size, err := p.size()
	if err != nil {
		return 0, err
	}
	p.sorted.Do(func() {
		p.starts = make([]int64, p.n, p.n+1)
		for i := range p.starts {
			p.starts[i], _ = p.offset(i)
		}
		slices.Sort(p.starts)
		p.starts = append(p.starts, size-int64(len(hash{})))
	})
	i := sort.Search(len(p.starts), func(i int) bool { return p.starts[i] > off })
	if i == len(p.starts) {
		return 0, fmt.Errorf("read %s: no object at %d", p.path, off)
	}
	return p.starts[i], nil
}

// raw gives an object as it stands in the pack, header included.
func (p *packFile) raw(off int64) (*io.SectionReader, error) {
	end, err := p.end(off)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(p.f, off, end-off), nil
}

// kindAt tells how the object at an offset is stored.
func (p *packFile) kindAt(off int64) (objectType, error) {
	f, err := p.file()
	if err != nil {
		return 0, err
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		return 0, fmt.Errorf("read %s: %w", p.path, err)
	}
	return objectType(b[0] >> 4 & 7), nil
}

// errChecksum: an object's bytes in the pack are not those its index was made
// of.
var errChecksum = errors.New("its bytes in the pack do not have their checksum")

// intact compares an object's bytes in the pack with the checksum its index
// holds, and tells what they are. copyTo, when not nil, gets them on the way.
func (p *packFile) intact(it packItem, copyTo io.Writer, buf []byte) (objectType, error) {
	r, err := p.raw(it.off)
	if err != nil {
		return 0, err
	}
	var kind objectType
	crc := uint32(0)
	for left := r.Size(); left > 0; {
		n, err := io.ReadFull(r, buf[:min(left, int64(len(buf)))])
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", p.path, err)
		}
		if kind == 0 {
			kind = objectType(buf[0] >> 4 & 7)
		}
		crc = crc32.Update(crc, crc32.IEEETable, buf[:n])
		if copyTo != nil {
			if _, err := copyTo.Write(buf[:n]); err != nil {
				return 0, err
			}
		}
		left -= int64(n)
	}
	if crc != it.crc {
		return kind, errChecksum
	}
	return kind, nil
}

// The types of objects stored as a difference to another one.
const (
	offsetDelta objectType = 6 // the other stands so many bytes before, in the same pack
	refDelta    objectType = 7 // the other is named
)

// packHeader is the header of one object in a pack.
type packHeader struct {
	kind objectType
	size int64 // of the object; of the difference for a delta
	base hash  // of a refDelta
	back int64 // of an offsetDelta
}

// readHeader reads an object's header from a pack.
func readHeader(r *bufio.Reader) (packHeader, error) {
	var h packHeader
	bad := errors.New("bad object header")
	c, err := r.ReadByte()
	if err != nil {
		return h, err
	}
	h.kind, h.size = objectType(c>>4&7), int64(c&0x0f)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil || shift > 56 {
			return h, bad
		}
		h.size |= int64(c&0x7f) << shift
	}
	switch h.kind {
	case commitObject, treeObject, blobObject:
		return h, nil
	case refDelta:
		_, err = io.ReadFull(r, h.base[:])
		return h, err
	case offsetDelta:
		for n := 0; ; n++ {
			if c, err = r.ReadByte(); err != nil || n > 8 {
				return h, bad
			}
			h.back = h.back<<7 | int64(c&0x7f)
			if c&0x80 == 0 {
				return h, nil
			}
			h.back++
		}
	}
	return h, bad
}

// inflater decompresses one object. It goes back to its pool on Close.
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

// inflateBuffer is how much of a pack is read at once.
const inflateBuffer = 16 << 10

// open begins to read the object at an offset; its header is what stands
// there, a delta's as well.
func (p *packFile) open(off int64, pool *sync.Pool) (packHeader, io.ReadCloser, error) {
	f, err := p.file()
	if err != nil {
		return packHeader{}, nil, err
	}
	src := io.NewSectionReader(f, off, 1<<62)
	z, reused := pool.Get().(*inflater)
	if reused {
		z.in.Reset(src)
	} else {
		z = &inflater{pool: pool, in: bufio.NewReaderSize(src, inflateBuffer)}
	}
	h, err := readHeader(z.in)
	if err == nil {
		if z.z == nil {
			z.z, err = zlib.NewReader(z.in)
		} else {
			err = z.z.(zlib.Resetter).Reset(z.in, nil)
		}
	}
	if err != nil {
		return packHeader{}, nil, fmt.Errorf("read %s at %d: %w", p.path, off, err)
	}
	return h, z, nil
}

func (p *packFile) close() {
	p.once.Do(func() { p.err = os.ErrClosed })
	if p.f != nil {
		p.f.Close()
	}
}

// objectSize is an object's length: a header's, or the one a difference ends in.
func (p *packFile) objectSize(off int64, pool *sync.Pool) (int64, error) {
	f, err := p.file()
	if err != nil {
		return 0, err
	}
	var b [16]byte
	n, err := f.ReadAt(b[:], off)
	if err != nil && err != io.EOF {
		return 0, fmt.Errorf("read %s: %w", p.path, err)
	}
	if kind := objectType(b[0] >> 4 & 7); kind < offsetDelta {
		h, err := readHeader(bufio.NewReaderSize(bytes.NewReader(b[:n]), 16))
		return h.size, err
	}
	_, r, err := p.open(off, pool)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var head [20]byte // two numbers of at most ten bytes
	if n, err = io.ReadFull(r, head[:]); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("read %s: %w", p.path, err)
	}
	_, k := binary.Uvarint(head[:n])
	if k <= 0 {
		return 0, errBadDelta
	}
	size, k := binary.Uvarint(head[k:n])
	if k <= 0 || size > maxDeltaBytes {
		return 0, errBadDelta
	}
	return int64(size), nil
}
