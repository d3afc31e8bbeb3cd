package worldstate

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/klauspost/compress/zlib"
)

// packFile reads the undeltified objects of one pack. Safe for concurrent use.
type packFile struct {
	path string // of the .pack
	idx  []byte
	n    int
	once sync.Once
	f    *os.File
	err  error
}

const (
	indexTables  = 8
	indexEntries = indexTables + 4*256
)

// openPack loads a version 2 index; the pack itself is opened at first use.
func openPack(idxPath string) (*packFile, error) {
	idx, err := os.ReadFile(idxPath)
	if err != nil {
		return nil, err
	}
	p := &packFile{path: strings.TrimSuffix(idxPath, ".idx") + ".pack", idx: idx}
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
	return p, nil
}

// find gives an object's offset in the pack.
func (p *packFile) find(h hash) (int64, bool) {
	lo := 0
	if h[0] > 0 {
		lo = int(binary.BigEndian.Uint32(p.idx[indexTables+4*(int(h[0])-1):]))
	}
	hi := int(binary.BigEndian.Uint32(p.idx[indexTables+4*int(h[0]):]))
	for lo < hi {
		mid := (lo + hi) / 2
		switch c := bytes.Compare(p.idx[indexEntries+20*mid:][:20], h[:]); {
		case c == 0:
			return p.offset(mid)
		case c < 0:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0, false
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

// errDelta: the object is stored as a difference, which git's repack makes;
// the general reader takes it.
var errDelta = errors.New("stored as a delta")

// open begins to read the object at an offset.
func (p *packFile) open(off int64) (objectType, int64, io.ReadCloser, error) {
	p.once.Do(func() { p.f, p.err = os.Open(p.path) })
	if p.err != nil {
		return 0, 0, nil, p.err
	}
	r := bufio.NewReaderSize(io.NewSectionReader(p.f, off, 1<<62), 8<<10)
	c, err := r.ReadByte()
	if err != nil {
		return 0, 0, nil, fmt.Errorf("read %s: %w", p.path, err)
	}
	t, size := objectType(c>>4&7), int64(c&0x0f)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil || shift > 56 {
			return 0, 0, nil, fmt.Errorf("read %s: bad object header at %d", p.path, off)
		}
		size |= int64(c&0x7f) << shift
	}
	if t < commitObject || t > blobObject {
		return 0, 0, nil, errDelta
	}
	z, err := zlib.NewReader(r)
	if err != nil {
		return 0, 0, nil, fmt.Errorf("read %s at %d: %w", p.path, off, err)
	}
	return t, size, z, nil
}

func (p *packFile) close() {
	p.once.Do(func() { p.err = os.ErrClosed })
	if p.f != nil {
		p.f.Close()
	}
}
