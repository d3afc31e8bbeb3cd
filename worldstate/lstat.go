//go:build unix && !(linux && (amd64 || arm64))

package worldstate

import "golang.org/x/sys/unix"

// lstatat looks at a name in a directory without following a link.
func lstatat(dirfd int, name string) (stamp, error) {
	var st unix.Stat_t
	for {
		err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == unix.EINTR {
			continue
		}
		return newStamp(&st), err
	}
}
