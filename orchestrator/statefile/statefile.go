// Package statefile locks the files of the program and its users, replaces them atomically and
// reads them up to a limit.
package statefile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned by TryLock if the lock is held elsewhere.
var ErrLocked = errors.New("locked")

// Lock opens a file, or makes it, and waits for its lock. Closing the file releases the lock.
func Lock(path string) (*os.File, error) { return lock(path, os.O_RDWR|os.O_CREATE, unix.LOCK_EX) }

// TryLock is Lock without waiting.
func TryLock(path string) (*os.File, error) {
	return lock(path, os.O_RDWR|os.O_CREATE, unix.LOCK_EX|unix.LOCK_NB)
}

// LockFolder is Lock for a folder, which must exist.
func LockFolder(path string) (*os.File, error) { return lock(path, os.O_RDONLY, unix.LOCK_EX) }

func lock(path string, flags, how int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

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
	return err
}

// Replace writes a file by rename, with the folders above it: readers see the old content or
// the new. It does not wait for the disk. In one process, one goroutine at a time replaces a
// file.
func Replace(path string, data []byte, mode fs.FileMode) error {
	return replace(path, data, func(f *os.File) error { return f.Chmod(mode) })
}

// Rewrite is Replace for a file that users edit: a link keeps its place and an existing file its
// mode. When it returns, the new content is on the disk.
func Rewrite(path string, data []byte, mode fs.FileMode) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := replace(path, data, func(f *os.File) error { return errors.Join(f.Chmod(mode), f.Sync()) }); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}

// replace calls finish with the new file before it takes the old one's place.
func replace(path string, data []byte, finish func(*os.File) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temp := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err == nil {
		_, err = f.Write(data)
		err = errors.Join(err, finish(f), f.Close())
	}
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp) // the disk may be full; there may be none
	}
	return err
}

// Read reads a regular file of at most so many bytes. It does not wait for a FIFO. The error is
// an *fs.PathError.
func Read(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	data, err := ReadOpen(f, most)
	if err != nil {
		err = &fs.PathError{Op: "read", Path: path, Err: err}
	}
	return data, err
}

// ReadOpen is Read for an open file, which it closes. Its errors do not name the file.
func ReadOpen(f *os.File, most int64) ([]byte, error) {
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("not a file")
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("more than %d bytes", most)
	}
	return data, err
}

// ReadEnd reads at most so many bytes from the end of a regular file.
func ReadEnd(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, errors.New("not a file")
	}
	return io.ReadAll(io.NewSectionReader(f, max(info.Size()-most, 0), most))
}
