package scan

import (
	"context"
	"crypto/sha1"
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/internal/objects"
)

// content returns a file's hash and its stamp after the read. If that stamp differs from
// before, which the caller has just taken, the error is ErrContentChanged.
func (s *scanner) content(dirfd int, name, parent string, before fsys.Stamp) (gitfmt.Hash, fsys.Sight, error) {
	if !before.IsRegular() {
		return gitfmt.Hash{}, fsys.Sight{}, objects.ErrContentChanged
	}
	fd, err := fsys.Openat(dirfd, name, fsys.FileFlags, 0)
	if err != nil {
		return gitfmt.Hash{}, fsys.Sight{}, err
	}
	defer unix.Close(fd)
	if err := s.begin("read", parent, name); err != nil {
		return gitfmt.Hash{}, fsys.Sight{}, err
	}
	// The time before the read counts, so that a change during the read makes the stamp racy.
	begin := time.Now()
	var h gitfmt.Hash
	if before.Size <= objects.WholeFileBytes {
		h, err = s.readWhole(fd, before.Size)
	} else {
		h, err = s.stream(fd, name, before.Size)
	}
	if err != nil {
		return gitfmt.Hash{}, fsys.Sight{}, err
	}
	after, err := fsys.Fstat(fd)
	if err == nil {
		err = s.begin("reread", parent, name)
	}
	if err == nil && !after.SameContent(before) {
		err = objects.ErrContentChanged
	}
	return h, fsys.Sight{Stamp: after, Racy: fsys.Racy(after, begin)}, err
}

// fileBuffer holds one file's content, preceded by room for its git header.
type fileBuffer struct{ b []byte }

func (s *scanner) readWhole(fd int, size int64) (gitfmt.Hash, error) {
	buf := s.buffer(int(size))
	defer s.buffers.Put(buf)
	data := buf.b[gitfmt.HeaderRoom : gitfmt.HeaderRoom+int(size)]
	n := 0
	for n < int(size) { // a longer file shows in the stamp
		k, err := unix.Read(fd, data[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return gitfmt.Hash{}, err
		}
		if k == 0 {
			break
		}
		n += k
	}
	if n != int(size) {
		return gitfmt.Hash{}, objects.ErrContentChanged
	}
	h := buf.hash(n)
	return h, s.store(h, data[:n])
}

func (s *scanner) buffer(n int) *fileBuffer {
	buf, ok := s.buffers.Get().(*fileBuffer)
	if !ok {
		buf = &fileBuffer{}
	}
	if need := gitfmt.HeaderRoom + n; len(buf.b) < need {
		buf.b = make([]byte, max(need, 64<<10))
	}
	return buf
}

// hash returns the blob id of the first n bytes of content.
func (f *fileBuffer) hash(n int) gitfmt.Hash {
	var head [gitfmt.HeaderRoom]byte
	h := gitfmt.AppendHead(head[:0], gitfmt.BlobObject, int64(n))
	from := gitfmt.HeaderRoom - len(h)
	copy(f.b[from:], h)
	return sha1.Sum(f.b[from : gitfmt.HeaderRoom+n])
}

// store stores a blob if there is a pack and the store lacks the blob.
func (s *scanner) store(h gitfmt.Hash, data []byte) error {
	if s.pack == nil || s.objects.HasIntact(h) {
		return nil
	}
	if err := s.pack.Add(h, gitfmt.BlobObject, data); err != nil {
		return &objects.StoreFault{Err: err}
	}
	return nil
}

// stream hashes a large file, then reads it again to store it if the store lacks it.
func (s *scanner) stream(fd int, name string, size int64) (gitfmt.Hash, error) {
	// An os.File closes its descriptor, and the caller closes fd.
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	f := os.NewFile(uintptr(dup), name)
	defer f.Close()
	sum := sha1.New()
	sum.Write(gitfmt.AppendHead(nil, gitfmt.BlobObject, size))
	n, err := io.Copy(sum, io.LimitReader(s.reader(f), size+1))
	if err != nil {
		return gitfmt.Hash{}, err
	}
	if n != size {
		return gitfmt.Hash{}, objects.ErrContentChanged
	}
	h := gitfmt.Hash(sum.Sum(nil))
	if s.pack == nil || s.objects.HasIntact(h) {
		return h, nil
	}
	return h, s.pack.AddStream(h, size, s.reader(f))
}

// reader reads a file from its beginning, and fails when the scan is stopped.
func (s *scanner) reader(f *os.File) io.Reader {
	return &fileReader{&s.stop, io.NewSectionReader(f, 0, math.MaxInt64)}
}

type fileReader struct {
	stop *atomic.Bool
	file *io.SectionReader
}

func (r *fileReader) Read(b []byte) (int, error) {
	if r.stop.Load() {
		return 0, context.Canceled
	}
	return r.file.Read(b)
}
