//go:build unix

package worldstate

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	// forkPrefix begins the name of the directory a fork is built in, beside
	// the one it becomes.
	forkPrefix = ".anamnesis-fork-"
	// forkNotePrefix begins the name of the note in the store about a fork that
	// is being built. Whoever builds holds a lock on it.
	forkNotePrefix = "fork-"
	// forkNoteTries bounds opening a note that others remove meanwhile.
	forkNoteTries = 16
)

// forkSite is the directory a fork is built in.
type forkSite struct {
	path string // of the directory
	temp string // its last name
	fd   int
	note *os.File // nil: the store cannot be written
}

// beginFork makes the directory in which the fork parent/name is built. Its
// name is noted first, and then which directory it is.
func beginFork(store string, pfd int, parent, name string) (*forkSite, error) {
	place := filepath.Join(parent, name)
	sum := sha256.Sum256([]byte(place))
	note, err := lockNote(filepath.Join(store, stateDir, fmt.Sprintf("%s%x", forkNotePrefix, sum[:8])), os.O_RDWR|os.O_CREATE)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("%w: another process builds %s", ErrLocked, place)
	}
	if err != nil && !isErrno(err, unix.EACCES, unix.EPERM, unix.EROFS) {
		return nil, err
	}
	s := &forkSite{temp: forkPrefix + newNonce(), note: note, fd: -1}
	s.path = filepath.Join(parent, s.temp)
	if err = s.tell(stamp{}); err == nil {
		err = s.make(pfd)
	}
	if err != nil {
		s.undo()
		s.end()
		return nil, err
	}
	return s, nil
}

func (s *forkSite) make(pfd int) error {
	if err := unix.Mkdirat(pfd, s.temp, 0o777); err != nil {
		return &os.PathError{Op: "mkdir", Path: s.path, Err: err}
	}
	var err error
	if s.fd, err = openat(pfd, s.temp, dirFlags, 0); err != nil {
		return &os.PathError{Op: "open", Path: s.path, Err: err}
	}
	st, err := fstat(s.fd)
	if err != nil {
		return &os.PathError{Op: "stat", Path: s.path, Err: err}
	}
	return s.tell(st)
}

// tell writes the note: the directory's path, device and inode, zeros before it
// is made. At no moment is there no line in it: what was told before may be all
// that is known of a directory.
func (s *forkSite) tell(st stamp) error {
	if s.note == nil {
		return nil
	}
	text := fmt.Appendf(nil, "%q %d %d\n", s.path, st.dev, st.ino)
	_, err := s.note.WriteAt(text, 0)
	if err == nil {
		err = s.note.Truncate(int64(len(text)))
	}
	if err == nil {
		err = s.note.Sync()
	}
	if err != nil {
		return fmt.Errorf("note the fork: %w", err)
	}
	return nil
}

// undo removes what was built. What cannot be removed stays noted for the next
// fork.
func (s *forkSite) undo() { _ = removeBuilt(s.path) }

// end forgets the site, unless its directory is still there.
func (s *forkSite) end() {
	if s.fd >= 0 {
		closeFD(s.fd)
	}
	if s.note == nil {
		return
	}
	if _, err := os.Lstat(s.path); errors.Is(err, fs.ErrNotExist) {
		os.Remove(s.note.Name())
	}
	s.note.Close()
}

// lockNote opens a note and takes its lock: EWOULDBLOCK where another process
// has it.
func lockNote(path string, flags int) (*os.File, error) {
	for range forkNoteTries {
		f, err := os.OpenFile(path, flags, 0o600)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if st, serr := fstat(int(f.Fd())); err == nil && serr == nil && st.nlink > 0 {
			return f, nil
		}
		f.Close()
		if err != nil {
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
	}
	return nil, &os.PathError{Op: "lock", Path: path, Err: unix.EWOULDBLOCK}
}

// clearForks removes what killed forks left. A directory that is not the one
// noted, by device and inode, is somebody else's and stays; of one that was
// never told only its name is known, so it goes if it is empty.
func clearForks(store string) {
	notes, _ := stateFiles(store, forkNotePrefix) // the next fork looks again
	for _, path := range notes {
		if note, err := lockNote(path, os.O_RDWR); err == nil {
			clearFork(note)
			note.Close()
		}
	}
}

func clearFork(note *os.File) {
	var path string
	var dev, ino uint64
	if n, _ := fmt.Fscanf(note, "%q %d %d\n", &path, &dev, &ino); n != 3 {
		os.Remove(note.Name()) // nothing was made before it was written
		return
	}
	st, err := lstatat(unix.AT_FDCWD, path)
	switch {
	case errors.Is(err, unix.ENOENT):
		if _, perr := os.Lstat(filepath.Dir(path)); perr != nil {
			return // its disk may come back
		}
	case err != nil:
		return
	case ino == 0:
		_ = unix.Rmdir(path)
	case st.ino == ino && st.dev == dev && st.isDir():
		if removeBuilt(path) != nil {
			return
		}
	}
	os.Remove(note.Name())
}

// removeBuilt removes a directory of ours with everything in it, read-only
// directories included.
func removeBuilt(path string) error {
	openUp(unix.AT_FDCWD, path)
	return os.RemoveAll(path)
}

// openUp makes a directory and all beneath writable, and follows no link. What it
// cannot open is left to whoever removes it to tell.
func openUp(dirfd int, name string) {
	st, err := lstatat(dirfd, name)
	if err != nil || !st.isDir() {
		return
	}
	if st.mode&0o700 != 0o700 {
		_, _ = chmodAt(dirfd, name, st, 0o700)
	}
	fd, err := openat(dirfd, name, dirFlags, 0)
	if err != nil {
		return
	}
	defer closeFD(fd)
	names, _ := readNames(fd)
	for _, n := range names {
		openUp(fd, n)
	}
}
