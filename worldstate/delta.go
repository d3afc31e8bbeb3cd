package worldstate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// maxDeltaChain bounds how many differences an object may be made of; git's
// own packs have at most 4,095.
const maxDeltaChain = 4095

// maxDeltaBytes bounds an object made of a difference: it is put together in
// memory. git makes none of objects above 512 MiB.
const maxDeltaBytes = 1 << 30

// errNoBase: git cannot read such a difference.
var errNoBase = errors.New("which is not in the same pack")

// undelta gives a whole object of a pack that may be stored as a difference. What
// that starts from is looked for in other packs, too, unless alone is set.
func (s *objectStore) undelta(p *packFile, off int64, chain int, alone bool) (objectType, []byte, error) {
	h, r, err := p.open(off, &s.inflaters)
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	if h.size > maxDeltaBytes || chain > maxDeltaChain {
		return 0, nil, fmt.Errorf("an object of %d bytes, %d differences deep, is past what is read in memory", h.size, chain)
	}
	data := make([]byte, h.size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, fmt.Errorf("read %s at %d: %w", p.path, off, err)
	}
	switch h.kind {
	case offsetDelta:
		if h.back <= 0 || h.back >= off {
			return 0, nil, fmt.Errorf("read %s at %d: a difference to nothing", p.path, off)
		}
		off -= h.back
	case refDelta:
		var ok bool
		if off, ok = p.find(h.base); !ok { // a thin pack, which git cannot read
			if alone {
				return 0, nil, fmt.Errorf("a difference to %s, %w", h.base, errNoBase)
			}
			if p, off = s.lookup(h.base); p == nil {
				return 0, nil, fmt.Errorf("read %s: a difference to %s: %w", p.path, h.base, errNoObject)
			}
		}
	default:
		return h.kind, data, nil
	}
	t, before, err := s.undelta(p, off, chain+1, alone)
	if err != nil {
		return 0, nil, err
	}
	out, err := applyDelta(before, data)
	return t, out, err
}

var errBadDelta = errors.New("a damaged difference")

// applyDelta makes an object of another one and git's description of the
// difference: the two sizes, then instructions to copy from the other object
// or to insert.
func applyDelta(before, delta []byte) ([]byte, error) {
	size := func() (int64, bool) {
		v, n := binary.Uvarint(delta)
		if n <= 0 || v > maxDeltaBytes {
			return 0, false
		}
		delta = delta[n:]
		return int64(v), true
	}
	from, ok1 := size()
	to, ok2 := size()
	if !ok1 || !ok2 || from != int64(len(before)) {
		return nil, errBadDelta
	}
	out := make([]byte, 0, to)
	for len(delta) > 0 {
		c := delta[0]
		delta = delta[1:]
		if c&0x80 == 0 {
			n := int(c)
			if n == 0 || n > len(delta) {
				return nil, errBadDelta
			}
			out, delta = append(out, delta[:n]...), delta[n:]
			continue
		}
		var field [7]byte // four of the offset, three of the size, the low ones first
		for i := range field {
			if c&(1<<i) != 0 {
				if len(delta) == 0 {
					return nil, errBadDelta
				}
				field[i], delta = delta[0], delta[1:]
			}
		}
		off := int64(binary.LittleEndian.Uint32(field[:4]))
		n := int64(field[4]) | int64(field[5])<<8 | int64(field[6])<<16
		if n == 0 {
			n = 0x10000
		}
		if off+n > int64(len(before)) || int64(len(out))+n > to {
			return nil, errBadDelta
		}
		out = append(out, before[off:off+n]...)
	}
	if int64(len(out)) != to {
		return nil, errBadDelta
	}
	return out, nil
}
