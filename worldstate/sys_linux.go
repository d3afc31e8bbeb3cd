package worldstate

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// openBeneath opens the directory rel (or "" for the root itself) beneath the
// directory rootfd, following no symbolic link on the way.
func openBeneath(rootfd int, rel string) (int, error) {
	if rel == "" {
		rel = "."
	}
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

// syncTree makes everything written to the file system of fd durable.
func syncTree(fd int) error {
	if err := unix.Syncfs(fd); err != nil {
		return fmt.Errorf("syncfs: %w", err)
	}
	return nil
}

// renameNoReplace renames within a directory; EEXIST where the new name stands.
func renameNoReplace(dirfd int, from, to string) error {
	err := unix.Renameat2(dirfd, from, dirfd, to, unix.RENAME_NOREPLACE)
	if isErrno(err, unix.EINVAL, unix.ENOSYS) { // a file system without the flag
		return renameChecked(dirfd, from, to)
	}
	return err
}

// bootID names this boot of the machine, so that a pid from another one is
// not taken for a live process.
var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
})

func isErrno(err error, list ...unix.Errno) bool {
	for _, e := range list {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
