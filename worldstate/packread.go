package worldstate

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zlib"
)

// packFile reads one pack. Safe for concurrent use.
type packFile struct {
	*packIndex
	name string // of the index, without its directory
	path string // of the .pack

	opening sync.Mutex // guards the next two's making
	f       atomic.Pointer[os.File]
	bytes   int64 // once f is there
	err     error // why f never will be

	sorted sync.Once
	ends   packEnds
	endErr error
}

// openPack opens an index, checks it, and that the pack it belongs to stands
// beside it, whole as far as its end tells. The pack itself is opened for
// reading at first use.
func openPack(idxPath string) (*packFile, error) {
	x, err := openPackIndex(idxPath, smallPack)
	if err != nil {
		return nil, err
	}
	p := &packFile{packIndex: x, name: base(idxPath), path: strings.TrimSuffix(idxPath, ".idx") + ".pack"}
	if err := p.checkEnd(); err != nil {
		x.close()
		return nil, err
	}
	return p, nil
}

// checkEnd compares the pack's checksum, its last bytes, with the index's.
func (p *packFile) checkEnd() error {
	f, err := openFile(p.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var end hash
	if _, err := f.ReadAt(end[:], max(info.Size()-int64(len(end)), 0)); err != nil {
		return fmt.Errorf("pack %s: cut short", p.path)
	}
	if end != p.pack {
		return fmt.Errorf("pack %s: it does not end as its index says", p.path)
	}
	return nil
}

// file opens the pack at its first use. Where that fails it has failed for good,
// unless too many files were open.
func (p *packFile) file() (*os.File, error) {
	if f := p.f.Load(); f != nil {
		return f, nil
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	if f := p.f.Load(); f != nil || p.err != nil {
		return f, p.err
	}
	f, err := openFile(p.path)
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil {
			p.bytes = info.Size()
			p.f.Store(f)
			return f, nil
		}
		f.Close()
	}
	if !exhausted(err) {
		p.err = err
	}
	return nil, err
}

// size is what the pack takes on disk, without its index.
func (p *packFile) size() (int64, error) {
	_, err := p.file()
	return p.bytes, err
}

// packEnds is where the objects of a pack begin, and where the last one ends,
// sorted: those in the first four gigabytes in half the room.
type packEnds struct {
	near []uint32
	far  []int64
}

func (e *packEnds) add(off int64) {
	if off <= math.MaxUint32 {
		e.near = append(e.near, uint32(off))
	} else {
		e.far = append(e.far, off)
	}
}

// after gives the first of them behind an offset.
func (e *packEnds) after(off int64) (int64, bool) {
	if i := sort.Search(len(e.near), func(i int) bool { return int64(e.near[i]) > off }); i < len(e.near) {
		return int64(e.near[i]), true
	}
	if i := sort.Search(len(e.far), func(i int) bool { return e.far[i] > off }); i < len(e.far) {
		return e.far[i], true
	}
	return 0, false
}

// end is where the object that begins at off ends.
func (p *packFile) end(off int64) (int64, error) {
	size, err := p.size()
	if err != nil {
		return 0, err
	}
	p.sorted.Do(func() {
		var starts []int64
		if starts, p.endErr = p.starts(); p.endErr != nil {
			return
		}
		p.ends.near = make([]uint32, 0, len(starts)+1)
		for _, start := range starts {
			p.ends.add(start)
		}
		p.ends.add(size - int64(len(hash{})))
	})
	if p.endErr != nil {
		return 0, fmt.Errorf("read %s: %w", p.name, p.endErr)
	}
	end, ok := p.ends.after(off)
	if !ok {
		return 0, fmt.Errorf("read %s: no object at %d", p.path, off)
	}
	return end, nil
}

// raw gives an object as it stands in the pack, header included.
func (p *packFile) raw(off int64) (*io.SectionReader, error) {
	end, err := p.end(off)
	if err != nil {
		return nil, err
	}
	return io.NewSectionReader(p.f.Load(), off, end-off), nil
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
	p.opening.Lock()
	defer p.opening.Unlock()
	p.err = os.ErrClosed
	if f := p.f.Load(); f != nil {
		f.Close()
	}
	p.packIndex.close()
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
