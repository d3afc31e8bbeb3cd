package fsys

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Root is the world's directory during one operation. It is opened when
// there is something to look at in it.
type Root struct {
	path string
	Fd   int // -1: not open
}

// RootAt returns the directory at path, not opened yet.
func RootAt(path string) *Root { return &Root{path, -1} }

// OpenRoot opens the directory at path for one operation.
func OpenRoot(path string) (*Root, error) {
	r := RootAt(path)
	return r, r.Open()
}

func (r *Root) Open() error {
	if r.Fd >= 0 {
		return nil
	}
	fd, err := unix.Open(r.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open world", Path: r.path, Err: err}
	}
	r.Fd = fd
	return nil
}

// Stamp looks at the directory that is open, or is at the path.
func (r *Root) Stamp() (Stamp, error) {
	if r.Fd < 0 {
		st, err := Lstatat(unix.AT_FDCWD, r.path)
		if err == nil && st.IsDir() {
			return st, nil
		}
		if err := r.Open(); err != nil {
			return Stamp{}, err
		}
	}
	return Fstat(r.Fd)
}

func (r *Root) Close() {
	if r.Fd >= 0 {
		CloseFD(r.Fd)
		r.Fd = -1
	}
}

// RealDir returns a directory's one absolute path.
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

// RealPath returns a directory's one absolute path, also where it is not there.
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
