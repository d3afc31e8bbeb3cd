// Package durable writes files so that they survive a crash, locks them among processes, and
// reads those of users up to a limit. Every package that keeps files uses it. [FS] is the seam
// by which tests inject faults into each step of a write.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

const (
	DirMode  fs.FileMode = 0o700
	FileMode fs.FileMode = 0o600
)

// FS is what durable writes need of a file system. Other implementations than OS inject faults.
// Errors keep the meaning of io/fs (ErrNotExist, ErrExist). Methods may be called
// concurrently.
type FS interface {
	// Mkdir makes one directory of mode 0700.
	Mkdir(name string) error
	// ReadDir lists the names in a directory, in any order.
	ReadDir(name string) ([]string, error)
	// Open opens a file with os.O_* flags; a new one has mode 0600.
	Open(name string, flag int) (File, error)
	// Rename replaces newname atomically.
	Rename(oldname, newname string) error
	// Remove removes a file.
	Remove(name string) error
	// SyncDir returns when the directory's entries are durable.
	SyncDir(name string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Truncate sets the size in bytes.
	Truncate(size int64) error
	// Sync returns when the file's bytes and size are durable (fdatasync).
	// After an error it is unknown which are.
	Sync() error
	// Size is the size in bytes.
	Size() (int64, error)
}

// errNotRegular: something else is where a file should be.
var errNotRegular = errors.New("not a regular file")

// Unreadable reports whether an error shows damage: the bytes exist and cannot be read, since
// the device fails or the path is no regular file. Any other error of a file system means that
// the file could not be examined.
func Unreadable(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, errNotRegular) || errors.Is(err, syscall.EISDIR)
}

// OS is the operating system's file system.
type OS struct {
	// Mode is the mode of every file that Open makes or empties, whatever the umask; 0 means
	// that new files get FileMode.
	Mode fs.FileMode
}

func (OS) Mkdir(name string) error { return os.Mkdir(name, DirMode) }

func (OS) ReadDir(name string) ([]string, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func (o OS) Open(name string, flag int) (File, error) {
	f, err := openRegular(name, flag)
	if err != nil {
		return nil, err
	}
	if o.Mode != 0 && flag&os.O_TRUNC != 0 {
		if err := f.Chmod(o.Mode); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return osFile{f}, nil
}

// openRegular opens a regular file. O_NONBLOCK has no effect on one; it keeps the open of a pipe
// from waiting for its other end.
func openRegular(name string, flag int) (*os.File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, FileMode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errNotRegular}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (OS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }
func (OS) Remove(name string) error             { return os.Remove(name) }

func (OS) SyncDir(name string) error { return Sync(name) }

// Sync makes the entries of a directory durable, or the bytes of a file that another program
// wrote.
func Sync(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", name, err)
	}
	return nil
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return datasync(f.File) }

// Lock locks the file until it is closed.
func (f osFile) Lock() error { return lockOpen(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
