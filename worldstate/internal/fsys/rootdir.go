package fsys

import (
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
