package fsys

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Root is the world's directory during one operation.
type Root struct {
	Fd int // -1: closed
}

// OpenRoot opens the directory at path for one operation.
func OpenRoot(path string) (*Root, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open world", Path: path, Err: err}
	}
	return &Root{fd}, nil
}

func (r *Root) Close() {
	if r.Fd >= 0 {
		CloseFD(r.Fd)
		r.Fd = -1
	}
}

// Dup opens the same directory once more.
func (r *Root) Dup() (*Root, error) {
	fd, err := unix.FcntlInt(uintptr(r.Fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("dup", err)
	}
	return &Root{fd}, nil
}

// SameDirectory reports whether both are the same directory.
func (r *Root) SameDirectory(o *Root) bool {
	var a, b unix.Stat_t
	return unix.Fstat(r.Fd, &a) == nil && unix.Fstat(o.Fd, &b) == nil && a.Dev == b.Dev && a.Ino == b.Ino
}

// Empty reports whether the directory has no entry.
func (r *Root) Empty() bool {
	fd, err := unix.Openat(r.Fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	dir := os.NewFile(uintptr(fd), ".")
	defer dir.Close()
	_, err = dir.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

// RealDir returns a directory's absolute path without symbolic links.
func RealDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &os.PathError{Op: "open", Path: abs, Err: unix.ENOTDIR}
	}
	return abs, nil
}

// RealPath is RealDir for a path that need not exist.
func RealPath(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for at, rest := abs, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil || at == "/" {
			return filepath.Join(real, rest), err
		}
	}
}
