//go:build unix && !linux

package worldstate

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openBeneath opens the directory rel (or "" for the root itself) beneath the
// directory rootfd, following no symbolic link on the way.
func openBeneath(rootfd int, rel string) (int, error) {
	if rel == "" {
		rel = "."
	}
	return openStepwise(rootfd, rel)
}

// syncTree asks for everything written to be made durable; without syncfs
// there is only the call for all file systems at once.
func syncTree(int) error {
	unix.Sync()
	return nil
}

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
