package objects

import (
	"bytes"
	"crypto/sha1"
	"fmt"
	"io"

	"github.com/go-git/go-git/v5/plumbing/format/packfile"

	"anamnesis/worldstate/internal/gitfmt"
)

// Tight reports whether an object is stored whole and was compressed at a high level, which its
// zlib header shows.
func (p *Pack) Tight(off int64) (bool, error) {
	h, rest, err := p.header(off)
	return err == nil && h.Kind < gitfmt.OffsetDelta && len(rest) > 1 && rest[1]>>6 > 0, err
}

// AddDelta stores an object as a delta to another one of the same pack. It returns false if the
// delta is longer than two thirds of the object.
func (p *Writer) AddDelta(h, other gitfmt.Hash, before, data []byte) (bool, error) {
	delta := packfile.DiffDelta(before, data)
	if len(delta) > len(data)*2/3 {
		return false, nil
	}
	if back, err := applyDelta(before, delta); err != nil || !bytes.Equal(back, data) {
		return false, nil // a bug in the library costs only space
	}
	buf := p.pool.entry()
	defer p.pool.entries.Put(buf)
	buf.Write(gitfmt.PackEntryHeader(gitfmt.RefDelta, int64(len(delta))))
	buf.Write(other[:])
	return true, p.compress(h, buf, delta)
}

// CheckSum verifies the checksum at the end of a pack.
func (p *Pack) CheckSum() error {
	if err := p.checkEnd(); err != nil {
		return err
	}
	sum := sha1.New()
	if _, err := io.Copy(sum, io.NewSectionReader(p.f, 0, p.bytes-sha1.Size)); err != nil {
		return fmt.Errorf("read %s: %w", p.Path, err)
	}
	if gitfmt.Hash(sum.Sum(nil)) != p.sum {
		return fmt.Errorf("pack %s: wrong checksum", p.Path)
	}
	return nil
}

// CheckIn reads and hashes an object using only its own pack, and returns its type.
func (s *Store) CheckIn(p *Pack, it Entry) (gitfmt.ObjectType, error) {
	t, size, r, err := s.openIn(p, it.Off)
	if err != nil {
		return 0, err
	}
	defer r.Close()
	sum := sha1.New()
	sum.Write(gitfmt.AppendHead(nil, t, size))
	n, err := io.Copy(sum, io.LimitReader(r, size+1))
	if err == nil && (n != size || gitfmt.Hash(sum.Sum(nil)) != it.Hash) {
		err = errWrongHash
	}
	return t, err
}
