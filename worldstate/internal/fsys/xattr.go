package fsys

import (
	"errors"
	"strings"

	"golang.org/x/sys/unix"
)

// CopyXattrs copies the extended attributes of one open file to another, access control lists
// among them, and returns the names of those that it could not copy. It ignores attributes that
// the kernel or a security module sets on every file by its own rules.
func CopyXattrs(from, to int) (lost []string) {
	for _, name := range xattrs(from) {
		if strings.HasPrefix(name, "security.") && name != "security.capability" {
			continue
		}
		value, err := xattr(from, name)
		if errors.Is(err, unix.ENODATA) {
			continue // removed meanwhile
		}
		if err == nil {
			err = Retry(func() error { return unix.Fsetxattr(to, name, value, 0) })
		}
		if err != nil {
			lost = append(lost, name)
		}
	}
	return lost
}

// xattrs returns the names of a file's extended attributes, nil on a file system without them.
func xattrs(fd int) []string {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil || size == 0 {
		return nil
	}
	buf := make([]byte, size)
	n, err := unix.Flistxattr(fd, buf)
	if err != nil || n == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
}

func xattr(fd int, name string) ([]byte, error) {
	size, err := unix.Fgetxattr(fd, name, nil)
	if err != nil || size == 0 {
		return nil, err
	}
	buf := make([]byte, size)
	n, err := unix.Fgetxattr(fd, name, buf)
	return buf[:max(n, 0)], err
}
