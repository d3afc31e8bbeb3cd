package objects

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	hashing "hash"
	"hash/crc32"
	"io"

	"anamnesis/worldstate/internal/gitfmt"
)

const (
	// spoolBytes: a large blob is compressed beside the pack, so that others
	// can be written meanwhile, up to so many compressed bytes. What is longer
	// continues in the pack itself, while nothing else is written.
	spoolBytes = 8 << 20
	// largeAtOnce bounds how many large blobs are compressed at once, and with
	// it the memory for them.
	largeAtOnce = 2
)

// ErrContentChanged: a stream did not hold the bytes its hash promised.
var ErrContentChanged = errors.New("changed while being read")

// AddStream stores a large blob of size bytes straight from r. want is its id;
// the zero id stands for one not known yet. It returns the id. When r does not
// hold exactly what want and size promise, the pack is as before and the error
// is ErrContentChanged; an error of r's is returned as it is, one of the pack's as
// a *StoreFault.
func (p *Writer) AddStream(want gitfmt.Hash, size int64, r io.Reader) (gitfmt.Hash, error) {
	if !want.IsZero() && p.Holds(want) {
		return want, nil
	}
	p.large <- struct{}{}
	defer func() { <-p.large }()
	sp := spool{p: p, sum: sha1.New()}
	defer sp.end()
	src := &failReader{r: io.LimitReader(r, size+1)}
	sp.sum.Write(gitfmt.AppendHead(nil, gitfmt.BlobObject, size))
	n, err := sp.compress(gitfmt.PackEntryHeader(gitfmt.BlobObject, size), src)
	h := gitfmt.Hash(sp.sum.Sum(nil))
	switch {
	case src.err != nil:
		return gitfmt.Hash{}, sp.undo(src.err)
	case err != nil:
		return gitfmt.Hash{}, sp.undo(writeFault(err))
	case n != size || !want.IsZero() && h != want:
		return gitfmt.Hash{}, sp.undo(ErrContentChanged)
	}
	return h, sp.commit(h)
}

func writeFault(err error) error { return &StoreFault{fmt.Errorf("write pack: %w", err)} }

// spool takes one object's compressed bytes: into memory, and from spoolBytes
// on into the pack.
type spool struct {
	p       *Writer
	sum     hashing.Hash
	buf     bytes.Buffer
	n       int64
	crc     uint32
	writing bool // the pack's lock is held
}

// compress writes a header and, compressed, what r holds, and returns how long
// that is.
func (sp *spool) compress(head []byte, r io.Reader) (int64, error) {
	if _, err := sp.Write(head); err != nil {
		return 0, err
	}
	z := sp.p.compressor(sp)
	n, err := io.Copy(io.MultiWriter(z, sp.sum), r)
	if cerr := z.Close(); err == nil {
		err = cerr
	}
	z.Reset(nil) // the pool must not hold the bytes
	sp.p.pool.compressors.Put(z)
	return n, err
}

func (sp *spool) Write(b []byte) (int, error) {
	sp.crc = crc32.Update(sp.crc, crc32.IEEETable, b)
	sp.n += int64(len(b))
	if !sp.writing {
		if sp.buf.Len()+len(b) <= spoolBytes {
			return sp.buf.Write(b)
		}
		if err := sp.spill(); err != nil {
			return 0, err
		}
	}
	return sp.p.w.Write(b)
}

// spill begins to write to the pack.
func (sp *spool) spill() error {
	sp.p.mu.Lock()
	sp.writing = true
	if err := sp.p.begin(); err != nil {
		return err
	}
	_, err := sp.p.w.Write(sp.buf.Bytes())
	sp.buf = bytes.Buffer{}
	return err
}

// commit makes the object one of the pack's.
func (sp *spool) commit(h gitfmt.Hash) error {
	if !sp.writing {
		if err := sp.spill(); err != nil {
			return sp.undo(writeFault(err))
		}
	}
	if _, twice := sp.p.seen[h]; twice {
		return sp.undo(nil)
	}
	sp.p.record(h, sp.crc, sp.n)
	return nil
}

// undo takes back what was written, for cause.
func (sp *spool) undo(cause error) error {
	if !sp.writing || sp.p.f == nil {
		return cause
	}
	if err := sp.p.truncate(); err != nil {
		return writeFault(errors.Join(cause, err))
	}
	return cause
}

func (sp *spool) end() {
	if sp.writing {
		sp.p.mu.Unlock()
	}
}

// failReader distinguishes a reader's failure from the writer's.
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
