//go:build unix && !linux

package worldstate

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openPart is openBeneath for a path of less than PATH_MAX.
func openPart(rootfd int, rel string) (int, error) { return openStepwise(rootfd, rel) }

// syncsTrees reports that syncTree makes a whole file system durable. Without
// syncfs nothing does: sync(2) only begins to write.
const syncsTrees = false

// syncTree is never called here: every file and directory is synced on its own.
func syncTree(fd int) error { return fsync(fd) }

// openHandle opens a name to change its mode or owner; no link is followed, and
// none can be opened.
func openHandle(dirfd int, name string) (int, error) { return openat(dirfd, name, fileFlags, 0) }

// chmodUnopened changes the mode of what openHandle may not open, by its name: of
// a link that was put there meanwhile the link's own mode changes.
func chmodUnopened(dirfd int, name string, st stamp, perm uint32, err error) (stamp, error) {
	if !isErrno(err, unix.EACCES) {
		return st, err
	}
	if err := unix.Fchmodat(dirfd, name, perm, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return st, err
	}
	return lstatat(dirfd, name)
}

// chmodHandle is fchmod for what openHandle opened.
func chmodHandle(fd int, perm uint32) error { return unix.Fchmod(fd, perm) }

// chownHandle is fchown for what openHandle, or anybody, opened.
func chownHandle(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }

// renameNoReplace renames within a directory; EEXIST where the new name stands.
func renameNoReplace(dirfd int, from, to string) error { return renameChecked(dirfd, from, to) }

// bootID is unknown here: the lock's holder is named by its pid alone.
func bootID() string { return "" }

func isErrno(err error, list ...unix.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
