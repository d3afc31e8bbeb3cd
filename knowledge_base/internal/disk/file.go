// Package disk is the cards' access to the file system: durable writes with a seam for
// faults, locks among processes, and marks that tell whether a file changed.
package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	// WriteTemp writes a new file in dir and syncs it.
	WriteTemp(dir string, data []byte) (path string, err error)
	Rename(from, to string) error
	SyncDir(dir string) error
}

type OS struct{}

func (OS) WriteTemp(dir string, data []byte) (string, error) {
	f, err := os.CreateTemp(dir, TempMark+"*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

func (OS) Rename(from, to string) error { return os.Rename(from, to) }

func (OS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// WriteAtomic makes path hold data: after it returns nil the new content
// survives a crash, and at no moment is there a half-written file at path.
func WriteAtomic(fsys FS, path string, data []byte) error {
	dir := filepath.Dir(path)
	temp, err := fsys.WriteTemp(dir, data)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := fsys.Rename(temp, path); err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(temp))
	}
	if err := fsys.SyncDir(dir); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
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

// Lock takes an exclusive lock among processes, waiting for it when wait
// is set. A nil release with a nil error means: held by another.
func Lock(path string, wait bool) (release func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, FileMode)
	if err != nil {
		return nil, err
	}
	how := syscall.LOCK_EX
	if !wait {
		how |= syscall.LOCK_NB
	}
	if err := flock(f, how); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, nil
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
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

// SweepTemp removes what writers that died left behind. The caller holds the
// lock, so no other process writes.
func SweepTemp(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), TempMark) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
