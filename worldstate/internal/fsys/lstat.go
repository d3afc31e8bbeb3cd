//go:build darwin || (linux && !amd64 && !arm64)

package fsys

import "golang.org/x/sys/unix"

// Lstatat returns the stamp of a name in a directory without following a link.
func Lstatat(dirfd int, name string) (Stamp, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		return NewStamp(&st), err
	}
}
