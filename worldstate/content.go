package worldstate

import (
	"crypto/sha1"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

// storeFault marks an error of the store, which ends the scan, apart from one
// of the file, which is listed.
type storeFault struct{ err error }

func (e *storeFault) Error() string { return e.err.Error() }
func (e *storeFault) Unwrap() error { return e.err }

// wholeFileBytes: files up to it are read at once, larger ones streamed. With
// scanWorkers at work it bounds the memory for contents.
const wholeFileBytes = 512 << 10

// content gives a file's hash and how it stood meanwhile. Where that is not as
// before, what a look just now saw, the error is errContentChanged.
func (s *scanner) content(dirfd int, name, parent string, before fsys.Stamp) (gitfmt.Hash, fsys.Sight, error) {
	if !before.IsRegular() {
		return gitfmt.Hash{}, fsys.Sight{}, errContentChanged
	}
	fd, err := fsys.Openat(dirfd, name, fsys.FileFlags, 0)
	if err != nil {
		return gitfmt.Hash{}, fsys.Sight{}, err
	}
	defer unix.Close(fd)
	if s.fault != nil {
		if err := s.fault("read", fsys.Join(parent, name)); err != nil {
			return gitfmt.Hash{}, fsys.Sight{}, err
		}
	}
	begin := time.Now()
	var h gitfmt.Hash
	if before.Size <= wholeFileBytes {
		h, err = s.whole(fd, before.Size)
	} else {
		h, err = s.stream(fd, name, before.Size)
	}
	if err != nil {
		return gitfmt.Hash{}, fsys.Sight{}, err
	}
	after, err := fsys.Fstat(fd)
	if err == nil {
		var fault error
		if s.fault != nil {
			fault = s.fault("reread", fsys.Join(parent, name))
		}
		if fault != nil {
			err = fault
		} else if !after.SameContent(before) {
			err = errContentChanged
		}
	}
	return h, fsys.Sight{Stamp: after, Racy: fsys.Racy(after, begin)}, err
}

// fileBuffer holds one file's content, behind room for its git header.
type fileBuffer struct{ b []byte }

func (s *scanner) whole(fd int, size int64) (gitfmt.Hash, error) {
	buf := s.buffer(int(size))
	defer s.buffers.Put(buf)
	data := buf.b[gitfmt.HeaderRoom : gitfmt.HeaderRoom+int(size)]
	n := 0
	for n < int(size) { // more than that shows in the stamp
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
		return gitfmt.Hash{}, errContentChanged
	}
	h := buf.hash(n)
	return h, s.keep(h, data[:n])
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

// hash gives the id of the blob of the first n bytes of content.
func (f *fileBuffer) hash(n int) gitfmt.Hash {
	var head [gitfmt.HeaderRoom]byte
	h := gitfmt.AppendHead(head[:0], gitfmt.BlobObject, int64(n))
	from := gitfmt.HeaderRoom - len(h)
	copy(f.b[from:], h)
	return sha1.Sum(f.b[from : gitfmt.HeaderRoom+n])
}

// keep stores a blob where there is a pack and the store lacks it.
func (s *scanner) keep(h gitfmt.Hash, data []byte) error {
	if s.pack == nil {
		s.miss(h)
		return nil
	}
	if s.objects.hasIntact(h) {
		return nil
	}
	if err := s.pack.add(h, gitfmt.BlobObject, data); err != nil {
		return &storeFault{err}
	}
	return nil
}

// miss counts a blob that only a scan that stores would have stored.
func (s *scanner) miss(h gitfmt.Hash) {
	if !s.objects.owns(h) {
		s.unheld.Add(1)
	}
}

// stream hashes a large file, and reads it a second time to store it, unless the
// store is empty and is sure to lack it.
func (s *scanner) stream(fd int, name string, size int64) (gitfmt.Hash, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return gitfmt.Hash{}, err
	}
	f := os.NewFile(uintptr(dup), name)
	defer f.Close()
	read := s.reading(size)
	defer read(-size) // it is counted as a whole when it is done
	if s.pack != nil && s.objects.empty() {
		return s.pack.addStream(gitfmt.Hash{}, size, &fsys.HoleReader{Ctx: s.ctx, F: f, Told: read})
	}
	sum := sha1.New()
	sum.Write(gitfmt.AppendHead(nil, gitfmt.BlobObject, size))
	n, err := io.Copy(sum, io.LimitReader(&fsys.HoleReader{Ctx: s.ctx, F: f, Told: read}, size+1))
	if err != nil {
		return gitfmt.Hash{}, err
	}
	if n != size {
		return gitfmt.Hash{}, errContentChanged
	}
	h := gitfmt.Hash(sum.Sum(nil))
	if s.pack == nil {
		s.miss(h)
		return h, nil
	}
	if s.objects.hasIntact(h) {
		return h, nil
	}
	return s.pack.addStream(h, size, &fsys.HoleReader{Ctx: s.ctx, F: f, Told: func(int64) { read(0) }})
}

// reading counts the bytes of a file that is being read for whoever waits. What
// is read twice counts once; a negative number takes back what was counted.
func (s *scanner) reading(size int64) func(n int64) {
	if s.progress == nil {
		return func(int64) {}
	}
	counted := int64(0)
	return func(n int64) {
		n = min(max(n, -counted), size-counted)
		counted += n
		s.mu.Lock()
		defer s.mu.Unlock()
		s.done.Bytes += n
		if n >= 0 {
			s.progress(s.done)
		}
	}
}
