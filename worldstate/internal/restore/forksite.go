//go:build unix

package restore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/worldstate/internal/fsys"
)

const (
	// ForkPrefix begins the name of the directory a fork is built in, beside the one
	// it becomes; a nonce follows. Whoever builds holds a lock on the directory.
	ForkPrefix = ".anamnesis-fork-"
	// forkTries bounds making a directory that others take for a leftover before it
	// is locked.
	forkTries = 16
)

// forkSite is the directory a fork is built in.
type forkSite struct {
	Path string // of the directory
	Temp string // its last name
	Fd   int
}

// BeginFork makes a directory for a fork in parent, which pfd is, and locks it.
func BeginFork(pfd int, parent string) (*forkSite, error) {
	for range forkTries {
		temp := ForkPrefix + fsys.NewNonce()
		s := &forkSite{Temp: temp, Path: filepath.Join(parent, temp), Fd: -1}
		if err := unix.Mkdirat(pfd, temp, 0o777); err != nil {
			return nil, &os.PathError{Op: "mkdir", Path: s.Path, Err: err}
		}
		var err error
		s.Fd, err = fsys.Openat(pfd, temp, fsys.DirFlags, 0)
		if errors.Is(err, unix.ENOENT) {
			continue // taken for a leftover
		}
		if err != nil {
			s.Undo()
			return nil, &os.PathError{Op: "open", Path: s.Path, Err: err}
		}
		locked := unix.Flock(s.Fd, unix.LOCK_EX|unix.LOCK_NB)
		if _, err := fsys.Lstatat(pfd, temp); err == nil && locked != unix.EWOULDBLOCK {
			return s, nil // a file system without such locks has no leftovers removed either
		}
		fsys.CloseFD(s.Fd)
	}
	return nil, &os.PathError{Op: "lock", Path: parent, Err: unix.EWOULDBLOCK}
}

// Undo removes what was built. What cannot be removed, the next fork tries again.
func (s *forkSite) Undo() { _ = RemoveBuilt(s.Path) }

// End frees the site's lock.
func (s *forkSite) End() { fsys.CloseFD(s.Fd) }

// ClearForks removes what killed forks left in a directory: those of their names that
// nobody has locked.
func ClearForks(pfd int, parent string) {
	names, _ := fsys.ReadNames(pfd) // the next fork looks again
	for _, name := range names {
		if nonce, ok := strings.CutPrefix(name, ForkPrefix); !ok || len(nonce) != fsys.NonceDigits {
			continue
		}
		fd, err := fsys.Openat(pfd, name, fsys.DirFlags, 0)
		if err != nil {
			continue
		}
		if unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) == nil {
			_ = RemoveBuilt(filepath.Join(parent, name))
		}
		fsys.CloseFD(fd)
	}
}

// RemoveBuilt removes a directory of ours with everything in it, read-only
// directories included.
func RemoveBuilt(path string) error {
	openUp(unix.AT_FDCWD, path)
	return os.RemoveAll(path)
}

// openUp makes a directory and all beneath writable, and follows no link. What it
// cannot open is left to whoever removes it to tell.
func openUp(dirfd int, name string) {
	st, err := fsys.Lstatat(dirfd, name)
	if err != nil || !st.IsDir() {
		return
	}
	if st.Mode&0o700 != 0o700 {
		_, _ = ChmodAt(dirfd, name, st, 0o700)
	}
	fd, err := fsys.Openat(dirfd, name, fsys.DirFlags, 0)
	if err != nil {
		return
	}
	defer fsys.CloseFD(fd)
	names, _ := fsys.ReadNames(fd)
	for _, n := range names {
		openUp(fd, n)
	}
}
