package objects

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"anamnesis/worldstate/internal/gitfmt"
)

// maxDeltaChain bounds the length of a chain of deltas; git's packs have at most 4,095.
const maxDeltaChain = 4095

// undelta reads a whole object of a pack and applies its deltas.
func (s *Store) undelta(p *Pack, off int64, chain int) (gitfmt.ObjectType, []byte, error) {
	h, r, err := p.open(off, &s.inflaters)
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	if h.Size > gitfmt.MaxDeltaBytes || chain > maxDeltaChain {
		return 0, nil, fmt.Errorf("an object of %d bytes, %d deltas deep, is too large for memory", h.Size, chain)
	}
	data := make([]byte, h.Size)
	if _, err := io.ReadFull(r, data); err != nil {
		return 0, nil, fmt.Errorf("read %s at %d: %w", p.Path, off, err)
	}
	switch h.Kind {
	case gitfmt.OffsetDelta:
		if h.Back <= 0 || h.Back >= off {
			return 0, nil, fmt.Errorf("read %s at %d: a delta without a base", p.Path, off)
		}
		off -= h.Back
	case gitfmt.RefDelta:
		var ok bool
		if off, ok = p.Find(h.Base); !ok {
			return 0, nil, errors.New("the base of its delta is not in the same pack") // git cannot read it either
		}
	default:
		return h.Kind, data, nil
	}
	t, before, err := s.undelta(p, off, chain+1)
	if err != nil {
		return 0, nil, err
	}
	out, err := applyDelta(before, data)
	return t, out, err
}

func applyDelta(before, delta []byte) ([]byte, error) {
	if _, err := deltaSize(delta); err != nil {
		return nil, err
	}
	return packfile.PatchDelta(before, delta)
}

// deltaSize returns the length of the object that a delta produces, from the delta's header.
func deltaSize(delta []byte) (int64, error) {
	_, from := binary.Uvarint(delta)
	size, to := binary.Uvarint(delta[max(from, 0):])
	if from <= 0 || to <= 0 || size > gitfmt.MaxDeltaBytes {
		return 0, packfile.ErrInvalidDelta
	}
	return int64(size), nil
}
