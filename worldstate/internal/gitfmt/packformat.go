package gitfmt

import (
	"bytes"
	"errors"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
)

// MaxDeltaBytes bounds an object stored as a delta, which is rebuilt in memory. git makes no
// deltas of objects above 512 MiB.
const MaxDeltaBytes = 1 << 30

type PackItem struct {
	Hash Hash
	Crc  uint32
	Off  int64
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
	var w idxfile.Writer
	for _, it := range items {
		w.Add(it.Hash, uint64(it.Off), it.Crc)
	}
	var out bytes.Buffer
	err := w.OnFooter(pack)
	if err == nil {
		var x *idxfile.MemoryIndex
		if x, err = w.Index(); err == nil {
			_, err = idxfile.NewEncoder(&out).Encode(x)
		}
	}
	if err != nil {
		panic("worldstate: " + err.Error()) // a buffer takes every write
	}
	return out.Bytes()
}

// PackHeader is the header of one object in a pack.
type PackHeader struct {
	Kind ObjectType
	Size int64 // of the object; of the delta for a delta
	Base Hash  // of a RefDelta
	Back int64 // of an OffsetDelta
}

// ReadHeader reads an object's header from a pack.
func ReadHeader(r interface {
	io.Reader
	io.ByteReader
}) (PackHeader, error) {
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
			// The format adds 1 at each further byte, so that no distance has two encodings.
			h.Back++
		}
	}
	return h, bad
}
