package fsys

import (
	"golang.org/x/sys/unix"
)

// Fsync returns when what was written to fd is durable. On macOS fsync(2) passes the data to
// the drive; only F_FULLFSYNC also empties the drive's cache. On a file system without
// F_FULLFSYNC, such as SMB, plain fsync is used.
func Fsync(fd int) error {
	err := Retry(func() error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0)
		return err
	})
	if IsErrno(err, unix.ENOTSUP, unix.EINVAL) {
		err = Retry(func() error { return unix.Fsync(fd) })
	}
	return err
}

// openPart is OpenBeneath for a path of less than PATH_MAX.
func openPart(rootfd int, rel string) (int, error) { return openStepwise(rootfd, rel) }

// SyncsTrees reports whether SyncTree makes a whole file system durable. It does not here:
// there is no syncfs, and sync(2) only starts to write.
const SyncsTrees = false

// SyncTree is only a fallback here: files and directories are synced one by one.
func SyncTree(fd int) error { return Fsync(fd) }

// OpenHandle opens a name to change its mode or owner. It follows no link and cannot open one.
func OpenHandle(dirfd int, name string) (int, error) { return Openat(dirfd, name, FileFlags, 0) }

// ChmodUnopened changes the mode of a file that OpenHandle may not open, by name. If a link
// replaced the file meanwhile, the link's own mode changes.
func ChmodUnopened(dirfd int, name string, st Stamp, perm uint32, err error) (Stamp, error) {
	if !IsErrno(err, unix.EACCES) {
		return st, err
	}
	if err := unix.Fchmodat(dirfd, name, perm, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return st, err
	}
	return Lstatat(dirfd, name)
}

// ChmodHandle is fchmod for a descriptor of OpenHandle.
func ChmodHandle(fd int, perm uint32) error { return unix.Fchmod(fd, perm) }

// ChownHandle is fchown; it also takes a descriptor of OpenHandle.
func ChownHandle(fd, uid, gid int) error { return unix.Fchown(fd, uid, gid) }

// RenameNoReplace renames within a directory. The error is EEXIST if the new name exists.
func RenameNoReplace(dirfd int, from, to string) error { return renameChecked(dirfd, from, to) }

// BootID is unknown here, so that a lock's holder is named by its pid alone.
func BootID() string { return "" }
