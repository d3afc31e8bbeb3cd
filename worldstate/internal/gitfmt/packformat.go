package gitfmt

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"io"
	"sort"
)

// MaxDeltaBytes bounds an object stored as a delta, which is rebuilt in memory. git makes no
// deltas of objects above 512 MiB.
const MaxDeltaBytes = 1 << 30

type PackItem struct {
	Hash Hash
	Off  int64
	Crc  uint32
}

// AppendRaw appends data as a zlib stream of stored blocks, without compression.
func AppendRaw(out, data []byte) []byte {
	const most = 1<<16 - 1 // of a stored block
	out = append(out, 0x78, 0x01)
	sum := adler32.Checksum(data)
	for last := false; !last; {
		n := min(len(data), most)
		last = n == len(data)
		final := byte(0)
		if last {
			final = 1
		}
		out = append(out, final, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out, data = append(out, data[:n]...), data[n:]
	}
	return binary.BigEndian.AppendUint32(out, sum)
}

// PackEntryHeader encodes an object's type and size as a pack stores them.
func PackEntryHeader(t ObjectType, size int64) []byte {
	b := byte(t)<<4 | byte(size&0x0f)
	size >>= 4
	var out []byte
	for size > 0 {
		out = append(out, b|0x80)
		b = byte(size & 0x7f)
		size >>= 7
	}
	return append(out, b)
}

// EncodePackIndex encodes a version 2 pack index.
func EncodePackIndex(items []PackItem, pack Hash) []byte {
	sort.Slice(items, func(i, j int) bool { return bytes.Compare(items[i].Hash[:], items[j].Hash[:]) < 0 })
	out := []byte("\xfftOc\x00\x00\x00\x02")
	i := 0
	for b := range 256 {
		for i < len(items) && int(items[i].Hash[0]) <= b {
			i++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(i))
	}
	for _, it := range items {
		out = append(out, it.Hash[:]...)
	}
	for _, it := range items {
		out = binary.BigEndian.AppendUint32(out, it.Crc)
	}
	var far []int64
	for _, it := range items {
		if it.Off < 1<<31 {
			out = binary.BigEndian.AppendUint32(out, uint32(it.Off))
			continue
		}
		out = binary.BigEndian.AppendUint32(out, 1<<31|uint32(len(far)))
		far = append(far, it.Off)
	}
	for _, off := range far {
		out = binary.BigEndian.AppendUint64(out, uint64(off))
	}
	out = append(out, pack[:]...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// PackHeader is the header of one object in a pack.
type PackHeader struct {
	Kind ObjectType
	Size int64 // of the object; of the delta for a delta
	Base Hash  // of a RefDelta
	Back int64 // of an OffsetDelta
}

// ReadHeader reads an object's header from a pack.
func ReadHeader(r *bufio.Reader) (PackHeader, error) {
	var h PackHeader
	bad := errors.New("bad object header")
	c, err := r.ReadByte()
	if err != nil {
		return h, err
	}
	h.Kind, h.Size = ObjectType(c>>4&7), int64(c&0x0f)
	for shift := 4; c&0x80 != 0; shift += 7 {
		if c, err = r.ReadByte(); err != nil || shift > 56 {
			return h, bad
		}
		h.Size |= int64(c&0x7f) << shift
	}
	switch h.Kind {
	case CommitObject, TreeObject, BlobObject, TagObject:
		return h, nil
	case RefDelta:
		_, err = io.ReadFull(r, h.Base[:])
		return h, err
	case OffsetDelta:
		for n := 0; ; n++ {
			if c, err = r.ReadByte(); err != nil || n > 8 {
				return h, bad
			}
			h.Back = h.Back<<7 | int64(c&0x7f)
			if c&0x80 == 0 {
				return h, nil
			}
			h.Back++
		}
	}
	return h, bad
}
