//go:build unix && !linux

package fsys

import (
	"golang.org/x/sys/unix"
)

// openPart is OpenBeneath for a path of less than PATH_MAX.
func openPart(rootfd int, rel string) (int, error) { return openStepwise(rootfd, rel) }

// SyncsTrees reports that SyncTree makes a whole file system durable. Without
// syncfs nothing does: sync(2) only begins to write.
const SyncsTrees = false

// SyncTree is never called here: every file and directory is synced on its own.
func SyncTree(fd int) error { return Fsync(fd) }

// OpenHandle opens a name to change its mode or owner; no link is followed, and
// none can be opened.
func OpenHandle(dirfd int, name string) (int, error) { return Openat(dirfd, name, FileFlags, 0) }

// ChmodUnopened changes the mode of what OpenHandle may not open, by its name: of
// a link that was put there meanwhile the link's own mode changes.
func ChmodUnopened(dirfd int, name string, st Stamp, perm uint32, err error) (Stamp, error) {
	if !IsErrno(err, unix.EACCES) {
		return st, err
	}
	if err := unix.Fchmodat(dirfd, name, perm, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return st, err
	}
	return Lstatat(dirfd, name)
}

// ChmodHandle is fchmod for what OpenHandle opened.
func ChmodHandle(fd int, perm uint32) error { return unix.Fchmod(fd, perm) }

// ChownHandle is fchown, also for what OpenHandle opened.
func ChownHandle(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }

// RenameNoReplace renames within a directory; EEXIST where the new name exists.
func RenameNoReplace(dirfd int, from, to string) error { return renameChecked(dirfd, from, to) }

// BootID is unknown here: the lock's holder is named by its pid alone.
func BootID() string { return "" }
