// Package disk is the log's access to the file system: files and directories that can be
// made durable, with a seam for faults, and the lock of the one writer.
package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// FS is what the log needs of a file system. Other implementations than OS inject faults.
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

// errNotAFile: something else is where a file of the stream should be.
var errNotAFile = errors.New("not a regular file")

// Unreadable reports whether an error shows damage: the bytes exist and cannot be read, since
// the device fails or the path is no regular file. Any other error of a file system means that
// the file could not be examined.
func Unreadable(err error) bool {
	return errors.Is(err, syscall.EIO) || errors.Is(err, errNotAFile) || errors.Is(err, syscall.EISDIR)
}

// OS is the operating system's file system.
type OS struct{}

func (OS) Mkdir(name string) error { return os.Mkdir(name, 0o700) }

func (OS) ReadDir(name string) ([]string, error) {
	d, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

func (OS) Open(name string, flag int) (File, error) {
	// O_NONBLOCK has no effect on a file; it keeps the open of a pipe from waiting for its
	// other end.
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		if err == nil {
			err = &fs.PathError{Op: "open", Path: name, Err: errNotAFile}
		}
		return nil, errors.Join(err, f.Close())
	}
	return osFile{f}, nil
}

func (OS) Rename(oldname, newname string) error { return os.Rename(oldname, newname) }
func (OS) Remove(name string) error             { return os.Remove(name) }

func (OS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return datasync(f.File) }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Mkdir makes one directory in an existing parent, and its entry durable. One that exists may
// be from a writer that crashed, so its entry is synced as well.
func Mkdir(fsys FS, name, parent string) error {
	if err := fsys.Mkdir(name); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	if err := fsys.SyncDir(parent); err != nil {
		return fmt.Errorf("sync directory %s: %w", parent, err)
	}
	return nil
}

// WriteFile writes a file under a temporary name, syncs it and renames it. The caller syncs
// the directory. After a failure the temporary file is removed.
func WriteFile(fsys FS, temp, path string, data []byte) error {
	f, err := fsys.Open(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = fsys.Rename(temp, path)
	}
	if err != nil {
		// Best effort: the next writer of that name truncates it.
		_ = fsys.Remove(temp)
	}
	return err
}
