package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrLocked: another process, or another open file of this one, holds the lock.
var ErrLocked = errors.New("locked")

// Lock opens a file, or makes it, and waits for its lock. Closing the file releases the lock, and
// so does the end of the process.
func Lock(path string) (*os.File, error) { return lock(path, os.O_RDWR|os.O_CREATE, lockOpen) }

// TryLock is Lock without waiting. The error is ErrLocked if the lock is held elsewhere.
func TryLock(path string) (*os.File, error) { return lock(path, os.O_RDWR|os.O_CREATE, TryLockOpen) }

// LockFolder is Lock for a folder, which must exist.
func LockFolder(path string) (*os.File, error) { return lock(path, os.O_RDONLY, lockOpen) }

func lock(path string, flags int, flock func(*os.File) error) (*os.File, error) {
	f, err := os.OpenFile(path, flags, FileMode)
	if err != nil {
		return nil, err
	}
	if err := flock(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return f, nil
}

// lockOpen is Lock for an open file.
func lockOpen(f *os.File) error { return flock(f, unix.LOCK_EX) }

// TryLockOpen is TryLock for an open file.
func TryLockOpen(f *os.File) error { return flock(f, unix.LOCK_EX|unix.LOCK_NB) }

func flock(f *os.File, how int) error {
	err := error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		err = unix.Flock(int(f.Fd()), how)
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return ErrLocked
	}
	return os.NewSyscallError("flock", err)
}
