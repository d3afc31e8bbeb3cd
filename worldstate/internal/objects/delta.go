package objects

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"anamnesis/worldstate/internal/gitfmt"
)

// maxDeltaChain bounds how many differences an object may be made of; git's
// own packs have at most 4,095.
const maxDeltaChain = 4095

// ErrNoBase: git cannot read such a difference.
var ErrNoBase = errors.New("which is not in the same pack")

// reach says where what a difference starts from is looked for.
type reach int

const (
	anyPack  reach = iota
	samePack       // as git does
)

// undelta returns a whole object of a pack that may be stored as a difference.
func (s *Store) undelta(p *Pack, off int64, chain int, in reach) (gitfmt.ObjectType, []byte, error) {
	h, r, err := p.open(off, &s.inflaters)
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	if h.Size > gitfmt.MaxDeltaBytes || chain > maxDeltaChain {
		return 0, nil, fmt.Errorf("an object of %d bytes, %d differences deep, is past what is read in memory", h.Size, chain)
	}
	data := make([]byte, h.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, fmt.Errorf("read %s at %d: %w", p.Path, off, err)
	}
	switch h.Kind {
	case gitfmt.OffsetDelta:
		if h.Back <= 0 || h.Back >= off {
			return 0, nil, fmt.Errorf("read %s at %d: a difference to nothing", p.Path, off)
		}
		off -= h.Back
	case gitfmt.RefDelta:
		var ok bool
		if off, ok = p.Find(h.Base); !ok { // a thin pack, which git cannot read
			if in == samePack {
				return 0, nil, fmt.Errorf("a difference to %s, %w", h.Base, ErrNoBase)
			}
			if p, off = s.Lookup(h.Base); p == nil {
				return 0, nil, fmt.Errorf("read %s: a difference to %s: %w", p.Path, h.Base, ErrNoObject)
			}
		}
	default:
		return h.Kind, data, nil
	}
	t, before, err := s.undelta(p, off, chain+1, in)
	if err != nil {
		return 0, nil, err
	}
	out, err := applyDelta(before, data)
	return t, out, err
}

// applyDelta makes an object of another one and git's description of the difference.
func applyDelta(before, delta []byte) ([]byte, error) {
	if _, err := deltaSize(delta); err != nil {
		return nil, err
	}
	return packfile.PatchDelta(before, delta)
}

// deltaSize returns how long the object is that a difference ends in, from its beginning:
// the lengths of both objects.
func deltaSize(delta []byte) (int64, error) {
	_, from := binary.Uvarint(delta)
	size, to := binary.Uvarint(delta[max(from, 0):])
	if from <= 0 || to <= 0 || size > gitfmt.MaxDeltaBytes {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}
