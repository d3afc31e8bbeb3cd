package objects

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zlib"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// Pack reads one pack. Safe for concurrent use.
type Pack struct {
	*index
	Name string // of the index, without its directory
	Path string // of the .pack

	opening sync.Mutex // held while the file is opened
	f       atomic.Pointer[os.File]
	bytes   int64 // set with f
	err     error // why f cannot be opened

	measured sync.Once
	lengths  []int64
}

// OpenPack opens and checks an index, and checks the end of its pack. The pack itself is opened
// at first use.
func OpenPack(idxPath string) (*Pack, error) {
	x, err := OpenPackIndex(idxPath)
	if err != nil {
		return nil, err
	}
	p := &Pack{index: x, Name: fsys.Base(idxPath), Path: strings.TrimSuffix(idxPath, ".idx") + ".pack"}
	return p, p.checkEnd()
}

// checkEnd compares the pack's checksum, its last bytes, with the index's.
func (p *Pack) checkEnd() error {
	f, err := fsys.OpenFile(p.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var end gitfmt.Hash
	if _, err := f.ReadAt(end[:], max(info.Size()-int64(len(end)), 0)); err != nil {
		return fmt.Errorf("pack %s: cut short", p.Path)
	}
	if end != p.Pack {
		return fmt.Errorf("pack %s: its checksum is not the one in its index", p.Path)
	}
	return nil
}

// file opens the pack at its first use. A failure is permanent, unless too many files were
// open.
func (p *Pack) file() (*os.File, error) {
	if f := p.f.Load(); f != nil {
		return f, nil
	}
	p.opening.Lock()
	defer p.opening.Unlock()
	if f := p.f.Load(); f != nil || p.err != nil {
		return f, p.err
	}
	f, err := fsys.OpenFile(p.Path)
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil {
			p.bytes = info.Size()
			p.f.Store(f)
			return f, nil
		}
		f.Close()
	}
	if !fsys.Exhausted(err) {
		p.err = err
	}
	return nil, err
}

// Size returns the pack's size on disk, without its index.
func (p *Pack) Size() (int64, error) {
	_, err := p.file()
	return p.bytes, err
}

// Entry is an object in a pack with the size of its bytes there, its header included.
type Entry struct {
	gitfmt.PackItem
	Size int64
}

// Entry returns an object's entry.
func (p *Pack) Entry(h gitfmt.Hash) (Entry, bool) {
	i, ok := p.Position(h)
	if !ok {
		return Entry{}, false
	}
	size, err := p.Size()
	if err != nil {
		return Entry{}, false
	}
	p.measured.Do(func() { p.lengths = p.Lengths(size) })
	return Entry{p.item(i), p.lengths[i]}, true
}

// Entries returns all objects in the order of the pack.
func (p *Pack) Entries() ([]Entry, error) {
	size, err := p.Size()
	if err != nil {
		return nil, err
	}
	out := make([]Entry, p.N)
	for i, n := range p.Lengths(size) {
		out[i] = Entry{p.item(i), n}
	}
	slices.SortFunc(out, func(a, b Entry) int { return cmp.Compare(a.Off, b.Off) })
	return out, nil
}

// KindAt returns the type under which the object at an offset is stored.
func (p *Pack) KindAt(off int64) (gitfmt.ObjectType, error) {
	f, err := p.file()
	if err != nil {
		return 0, err
	}
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		return 0, fmt.Errorf("read %s: %w", p.Path, err)
	}
	return gitfmt.ObjectType(b[0] >> 4 & 7), nil
}

// errChecksum: an object's bytes in the pack do not match the index.
var errChecksum = errors.New("its bytes in the pack have a wrong checksum")

// Intact verifies the checksum of an object's bytes in the pack and returns the stored type. If
// copyTo is not nil, the bytes are also written there.
func (p *Pack) Intact(it Entry, copyTo io.Writer, buf []byte) (gitfmt.ObjectType, error) {
	f, err := p.file()
	if err != nil {
		return 0, err
	}
	if it.Size <= 0 {
		return 0, fmt.Errorf("read %s: no object can be at offset %d", p.Path, it.Off)
	}
	r := io.NewSectionReader(f, it.Off, it.Size)
	var kind gitfmt.ObjectType
	crc := uint32(0)
	for left := r.Size(); left > 0; {
		n, err := io.ReadFull(r, buf[:min(left, int64(len(buf)))])
		if err != nil {
			return 0, fmt.Errorf("read %s: %w", p.Path, err)
		}
		if kind == 0 {
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
		return kind, errChecksum
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
	f, err := p.file()
	if err != nil {
		return gitfmt.PackHeader{}, nil, err
	}
	src := io.NewSectionReader(f, off, 1<<62)
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

func (p *Pack) Close() {
	p.opening.Lock()
	defer p.opening.Unlock()
	p.err = os.ErrClosed
	if f := p.f.Load(); f != nil {
		f.Close()
	}
}

// objectSize returns an object's length; for a delta that of its result.
func (p *Pack) objectSize(off int64, pool *sync.Pool) (int64, error) {
	f, err := p.file()
	if err != nil {
		return 0, err
	}
	var b [16]byte
	n, err := f.ReadAt(b[:], off)
	if err != nil && err != io.EOF {
		return 0, fmt.Errorf("read %s: %w", p.Path, err)
	}
	if kind := gitfmt.ObjectType(b[0] >> 4 & 7); kind < gitfmt.OffsetDelta {
		h, err := gitfmt.ReadHeader(bufio.NewReaderSize(bytes.NewReader(b[:n]), 16))
		return h.Size, err
	}
	_, r, err := p.open(off, pool)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	var head [20]byte // two numbers of at most ten bytes
	if n, err = io.ReadFull(r, head[:]); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, fmt.Errorf("read %s: %w", p.Path, err)
	}
	return deltaSize(head[:n])
}
