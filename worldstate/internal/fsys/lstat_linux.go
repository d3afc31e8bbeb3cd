//go:build amd64 || arm64

package fsys

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lstatRoom is enough for a name with its NUL, and for most paths.
const lstatRoom = 256

// Lstatat returns the stamp of a name in a directory without following a link. A scan spends
// most of its time here; unlike unix.Fstatat this allocates nothing.
func Lstatat(dirfd int, name string) (Stamp, error) {
	var st unix.Stat_t
	if len(name) >= lstatRoom || strings.IndexByte(name, 0) >= 0 {
		for {
			err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
			if err != unix.EINTR {
				return NewStamp(&st), err
			}
		}
	}
	var path [lstatRoom]byte
	copy(path[:], name)
	for {
		_, _, errno := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dirfd), uintptr(unsafe.Pointer(&path)),
			uintptr(unsafe.Pointer(&st)), unix.AT_SYMLINK_NOFOLLOW, 0, 0)
		switch errno {
		case 0:
			return NewStamp(&st), nil
		case unix.EINTR:
			continue
		}
		return NewStamp(&st), errno
	}
}
