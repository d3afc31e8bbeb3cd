// Package disk is the cards' access to the file system: durable writes with a seam for
// faults, locks among processes, and marks that tell whether a file changed.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
	TempMark             = ".tmp-"
)

// FS is the seam between the store and the disk: what a durable
// write is made of, so that a test can fail or stop at each of its steps.
type FS interface {
	// WriteTemp writes a new synced file; pattern is a path whose last "*" is replaced.
	WriteTemp(pattern string, data []byte, mode fs.FileMode) (path string, err error)
	Rename(from, to string) error
	// Append adds data to the file at path, creating it, and syncs the file.
	Append(path string, data []byte) error
	SyncDir(dir string) error
}

// OS is the FS of the operating system.
type OS struct{}

func (OS) WriteTemp(pattern string, data []byte, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(pattern), filepath.Base(pattern))
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func (OS) Rename(from, to string) error { return os.Rename(from, to) }

func (OS) Append(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, FileMode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Sync(), f.Close())
}

func (OS) SyncDir(dir string) error { return SyncDir(dir) }

// SyncDir makes the entries of a folder durable, or the bytes of a file.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// WriteAtomic makes path hold data: after it returns nil the new content
// survives a crash, and at no moment is there a half-written file at path.
func WriteAtomic(fsys FS, path string, data []byte) error {
	return Replace(fsys, path, data, filepath.Join(filepath.Dir(path), TempMark+"*"), FileMode)
}

// Replace is WriteAtomic for a file of another mode, or one whose temporary file must have
// another place or name on the same file system; see [FS.WriteTemp] for temp.
func Replace(fsys FS, path string, data []byte, temp string, mode fs.FileMode) error {
	temp, err := fsys.WriteTemp(temp, data, mode)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(temp))
	}
	return fsys.SyncDir(filepath.Dir(path))
}

// MakeDir creates dir beneath an existing or new parent and syncs the parent.
func MakeDir(fsys FS, dir string) error {
	if fi, err := os.Stat(dir); err == nil {
		if !fi.IsDir() {
			return fmt.Errorf("create %s: a file is in the way", dir)
		}
		return nil
	}
	if err := os.MkdirAll(dir, DirMode); err != nil {
		return err // names the path
	}
	return fsys.SyncDir(filepath.Dir(dir))
}

// Lock waits for the exclusive lock among processes at path.
func Lock(path string) (release func(), err error) { return lock(path, syscall.LOCK_EX) }

// TryLock is Lock, but does not wait: release is nil if another process holds the lock.
func TryLock(path string) (release func(), err error) {
	release, err = lock(path, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, nil
	}
	return release, err
}

func lock(path string, how int) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, FileMode)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return func() { f.Close() }, nil
}

// LockOpen waits for the exclusive lock of an open file, which ends when it is closed.
func LockOpen(f *os.File) error { return flock(f, syscall.LOCK_EX) }

func flock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// SweepTemp removes the temporary files of crashed writers from dir, which may be missing. Their
// names begin with prefix. The caller holds the lock, so no other process writes.
func SweepTemp(dir, prefix string) error {
	left, err := fs.Glob(os.DirFS(dir), prefix+"*")
	for _, name := range left {
		if rerr := os.Remove(filepath.Join(dir, name)); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			return rerr
		}
	}
	return err
}
