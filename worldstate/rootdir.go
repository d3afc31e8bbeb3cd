//go:build unix

package worldstate

import (
	"os"

	"golang.org/x/sys/unix"
)

// rootDir is the world's directory during one operation. It is opened when
// there is something to look at in it.
type rootDir struct {
	path string
	fd   int // -1: not open
}

func (w *World) rootDir() *rootDir { return &rootDir{w.dir, -1} }

// openRoot opens the world's directory for one operation.
func (w *World) openRoot() (*rootDir, error) {
	r := w.rootDir()
	return r, r.open()
}

func (r *rootDir) open() error {
	if r.fd >= 0 {
		return nil
	}
	fd, err := unix.Open(r.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open world", Path: r.path, Err: err}
	}
	r.fd = fd
	return nil
}

// stamp looks at the directory that is open, or stands at the path.
func (r *rootDir) stamp() (stamp, error) {
	if r.fd < 0 {
		st, err := lstatat(unix.AT_FDCWD, r.path)
		if err == nil && st.isDir() {
			return st, nil
		}
		if err := r.open(); err != nil {
			return stamp{}, err
		}
	}
	return fstat(r.fd)
}

func (r *rootDir) close() {
	if r.fd >= 0 {
		closeFD(r.fd)
		r.fd = -1
	}
}
