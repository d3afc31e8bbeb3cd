package fsys

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// openPart is OpenBeneath for a path of less than PATH_MAX.
func openPart(rootfd int, rel string) (int, error) {
	how := &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	}
	for {
		fd, err := unix.Openat2(rootfd, rel, how)
		switch {
		case err == unix.EINTR || err == unix.EAGAIN:
			continue
		case err == unix.ENOSYS || err == unix.EPERM: // an old kernel, or a sandbox's filter
			return openStepwise(rootfd, rel)
		}
		return fd, err
	}
}

// SyncsTrees reports that SyncTree makes a whole file system durable.
const SyncsTrees = true

// Fsync returns when what was written to fd is durable.
func Fsync(fd int) error { return Retry(func() error { return unix.Fsync(fd) }) }

// SyncTree makes everything written to the file system of fd durable.
func SyncTree(fd int) error {
	if err := unix.Syncfs(fd); err != nil {
		return fmt.Errorf("syncfs: %w", err)
	}
	return nil
}

// OpenHandle opens a name without following links, to read its status or to change its mode or
// owner. It needs no permission on the file.
func OpenHandle(dirfd int, name string) (int, error) {
	return Openat(dirfd, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// ChmodHandle is fchmod for a descriptor of OpenHandle, which must not be a link.
func ChmodHandle(fd int, perm uint32) error {
	err := unix.Fchmodat(fd, "", perm, unix.AT_EMPTY_PATH)
	if IsErrno(err, unix.ENOSYS, unix.EOPNOTSUPP, unix.EINVAL, unix.EPERM) { // before Linux 6.6, or a sandbox's filter
		err = unix.Chmod("/proc/self/fd/"+strconv.Itoa(fd), perm)
	}
	return err
}

// ChmodUnopened returns err: OpenHandle needs no permission here, so there is no other way.
func ChmodUnopened(_ int, _ string, st Stamp, _ uint32, err error) (Stamp, error) { return st, err }

// ChownHandle is fchown; it also takes a descriptor of OpenHandle.
func ChownHandle(fd, uid, gid int) error { return unix.Fchownat(fd, "", uid, gid, unix.AT_EMPTY_PATH) }

// RenameNoReplace renames within a directory. The error is EEXIST if the new name exists.
func RenameNoReplace(dirfd int, from, to string) error {
	err := unix.Renameat2(dirfd, from, dirfd, to, unix.RENAME_NOREPLACE)
	if IsErrno(err, unix.EINVAL, unix.ENOSYS) { // a file system without the flag
		return renameChecked(dirfd, from, to)
	}
	return err
}

// BootID identifies this boot of the machine, so that a pid of an earlier boot is not taken for
// a live process.
var BootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})
