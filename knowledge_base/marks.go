package knowledgebase

import (
	"errors"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"

	"anamnesis/knowledge_base/sealed"
)

// racyWindow is how long after its last change a file's marks prove nothing:
// another change within the file system's coarsest time step (two seconds, on
// FAT) could leave them as they are. Such a file is read again.
const racyWindow = 2 * time.Second

// marks are what tells that a file was not changed: its place on the disk, its
// size, and when its bytes and its inode changed last, in nanoseconds. The zero
// value vouches for nothing.
type marks struct {
	dev, ino         uint64
	size             int64
	modified, noted  int64 // mtime, ctime
	regular, settled bool
}

// marksOf looks at a file that is about to be read at now.
func marksOf(path string, now time.Time) (marks, error) { return marksAt(unix.AT_FDCWD, path, now) }

// marksAt is marksOf for a path within an open folder: a look at many files of
// one folder takes half as long.
func marksAt(folder int, path string, now time.Time) (marks, error) {
	var st unix.Stat_t
	if err := lstat(folder, path, &st); err != nil {
		return marks{}, err
	}
	m := marks{dev: uint64(st.Dev), ino: st.Ino, size: st.Size, modified: st.Mtim.Nano(), noted: st.Ctim.Nano(),
		regular: st.Mode&unix.S_IFMT == unix.S_IFREG}
	m.settled = m.regular && max(m.modified, m.noted) < now.Add(-racyWindow).UnixNano()
	return m, nil
}

// vouch reports whether the file is the one that had the marks when it was
// read, unchanged.
func (m marks) vouch(now marks) bool {
	now.settled = m.settled
	return m.settled && m == now
}

func (m marks) write(w *sealed.Writer) {
	for _, n := range []uint64{m.dev, m.ino, uint64(m.size), uint64(m.modified), uint64(m.noted)} {
		w.Uint(n)
	}
}

// readMarks reads marks that were settled when they were written.
func readMarks(r *sealed.Reader) marks {
	return marks{dev: r.Uint(), ino: r.Uint(), size: int64(r.Uint()), modified: int64(r.Uint()), noted: int64(r.Uint()), regular: true, settled: true}
}

// lstat is the system call, begun again where a signal ended it.
func lstat(folder int, path string, st *unix.Stat_t) error {
	for {
		err := unix.Fstatat(folder, path, st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return &fs.PathError{Op: "lstat", Path: path, Err: err}
		}
	}
}
