package taskdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// Usable returns why a folder, or its nearest existing parent, cannot hold the program's
// files. An existing folder need not be writable: some callers only read.
func Usable(root string) error {
	if !utf8.ValidString(root) {
		return errors.New("its path is not UTF-8 text")
	}
	for at := root; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		var mode uint32 = unix.R_OK | unix.X_OK
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			if _, err := os.Lstat(at); err == nil {
				return fmt.Errorf("%s is a dangling link", at)
			}
			continue
		case errors.Is(err, syscall.ENOTDIR) && at != filepath.Dir(at):
			continue
		case err != nil:
			return errors.New(plainCause(err))
		case !info.IsDir():
			return fmt.Errorf("%s is not a folder", at)
		case at != root:
			mode = unix.W_OK | unix.X_OK
		}
		if err := unix.Access(at, mode); err != nil {
			return fmt.Errorf("%s: %s", at, plainCause(err))
		}
		if at == root {
			return nil
		}
		// Some file systems, such as /proc, allow the access and refuse the folder.
		probe, err := os.MkdirTemp(at, ".anamnesis-")
		if err != nil {
			return fmt.Errorf("no folder can be made in %s: %s", at, plainCause(err))
		}
		return os.Remove(probe)
	}
}

// plainCause returns an error of the system without the call and the path.
func plainCause(err error) string {
	var no syscall.Errno
	switch {
	case errors.Is(err, fs.ErrPermission):
		return "no permission"
	case errors.Is(err, syscall.EROFS):
		return "the file system is read-only"
	case errors.As(err, &no):
		return no.Error()
	}
	return err.Error()
}
