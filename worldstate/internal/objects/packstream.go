package objects

import (
	"cmp"
	"crypto/sha1"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"anamnesis/worldstate/internal/gitfmt"
)

// ErrContentChanged: a file changed while it was read.
var ErrContentChanged = errors.New("changed while being read")

// Copy stores an object of s in a pack that is being written, and returns its length. Large blobs are
// streamed.
func (s *Store) Copy(out *Writer, t gitfmt.ObjectType, h gitfmt.Hash, path string) (int64, error) {
	most := int64(gitfmt.MaxDeltaBytes)
	if t == gitfmt.BlobObject {
		most = WholeFileBytes
	}
	data, err := s.ReadUpTo(h, t, path, most)
	if err == nil {
		return int64(len(data)), out.Add(h, t, data)
	}
	if !errors.Is(err, ErrTooLarge) {
		return 0, err
	}
	_, size, r, err := s.Open(h)
	if err != nil {
		return 0, &gitfmt.MissingObjectError{Object: h.String(), Path: path, Err: err}
	}
	defer r.Close()
	return size, out.AddStream(h, size, r)
}

func writeFault(err error) error {
	if err == nil {
		return nil
	}
	return &StoreFault{fmt.Errorf("write pack: %w", err)}
}

// AddStream compresses the large blob h of size bytes, read from r, directly into the pack,
// which blocks other writes. If r does not match h and size, the pack is unchanged and the error
// is ErrContentChanged. An error of r is returned as it is, one of the pack as a *StoreFault.
func (p *Writer) AddStream(h gitfmt.Hash, size int64, r io.Reader) error {
	src := &failReader{r: io.LimitReader(r, size+1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, twice := p.seen[h]; twice {
		return nil
	}
	if err := p.begin(); err != nil {
		return writeFault(err)
	}
	sum, crc := sha1.New(), crc32.NewIEEE()
	sum.Write(gitfmt.AppendHead(nil, gitfmt.BlobObject, size))
	out := &countWriter{w: io.MultiWriter(p.w, crc)}
	_, err := out.Write(gitfmt.PackEntryHeader(gitfmt.BlobObject, size))
	z := p.compressor(out)
	n, cerr := io.Copy(io.MultiWriter(z, sum), src)
	err = cmp.Or(err, cerr, z.Close())
	p.pool.compressors.Put(z)
	switch {
	case src.err != nil:
		err = src.err
	case err != nil:
		err = writeFault(err)
	case n != size || gitfmt.Hash(sum.Sum(nil)) != h:
		err = ErrContentChanged
	}
	if err == nil {
		p.record(h, crc.Sum32(), out.n)
		return nil
	}
	if terr := p.truncate(); terr != nil {
		return writeFault(errors.Join(err, terr))
	}
	return err
}

// failReader records a reader's failure, to tell it from the writer's.
type failReader struct {
	r   io.Reader
	err error
}

func (f *failReader) Read(b []byte) (int, error) {
	n, err := f.r.Read(b)
	if err != nil && err != io.EOF {
		f.err = err
	}
	return n, err
}
