// Package fsys is the file system as the packages of worldstate use it: stamps that show
// whether a file changed, openat without symbolic links, durable writes, the store's locks and
// format number, holes, and the notifier of changes. It knows nothing of git.
package fsys

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"anamnesis/opstream/durable"
)

// IsErrno reports whether err is one of the given error numbers.
func IsErrno(err error, list ...unix.Errno) bool {
	return slices.ContainsFunc(list, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// Exhausted reports whether the system was out of descriptors or memory. Such an error says
// nothing about the file.
func Exhausted(err error) bool { return IsErrno(err, unix.EMFILE, unix.ENFILE, unix.ENOMEM) }

// OpenFile is os.Open; if too many files are open, the error names the remedy.
func OpenFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if IsErrno(err, unix.EMFILE, unix.ENFILE) {
		err = fmt.Errorf("%w; allow more of them (ulimit -n)", err)
	}
	return f, err
}

// OpenBeneath opens the directory rel beneath the directory rootfd without following symbolic
// links. An empty rel is rootfd itself.
func OpenBeneath(rootfd int, rel string) (int, error) {
	rel = cmp.Or(rel, ".")
	return openPart(rootfd, rel)
}

// openStepwise is OpenBeneath with one openat call for each component.
func openStepwise(rootfd int, rel string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := Openat(rootfd, ".", flags, 0)
	if err != nil || rel == "." {
		return fd, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := Openat(fd, name, flags, 0)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// Retry calls f until it is not interrupted by a signal.
func Retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func Openat(fd int, name string, flags int, mode uint32) (int, error) {
	for {
		n, err := unix.Openat(fd, name, flags, mode)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// maxLinkBytes bounds a link's target; Linux's own bound is one page.
const maxLinkBytes = 4096

func Readlinkat(dirfd int, name string) ([]byte, error) {
	buf := make([]byte, maxLinkBytes+1)
	n, err := unix.Readlinkat(dirfd, name, buf)
	if err == nil && n > maxLinkBytes {
		err = unix.ENAMETOOLONG
	}
	return buf[:max(n, 0)], err
}

// renameChecked is RenameNoReplace in two steps. What is created between them is replaced only
// if it is an empty directory.
func renameChecked(dirfd int, from, to string) error {
	if _, err := Lstatat(dirfd, to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(dirfd, from, dirfd, to)
}

// WriteFileDurably replaces a file of the store atomically and returns when the content and the
// name are durable.
func WriteFileDurably(path string, data []byte) error {
	if err := durable.WriteVia(durable.OS{}, Temp(filepath.Dir(path)), path, data); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return durable.Sync(filepath.Dir(path))
}

// Temp returns a name, which no other file has, for a temporary file in a directory of the store.
func Temp(dir string) string { return filepath.Join(dir, TempPrefix+NewNonce()) }

// TempPrefix begins the name of every temporary file in the store. Leftovers are removed when a
// World first takes the store's lock. The prefix is not "tmp_": git prune removes such files
// while they are being written.
const TempPrefix = "anamnesis_tmp_"

// ReadNames returns a directory's names, sorted.
func ReadNames(fd int) ([]string, error) {
	buf := make([]byte, 16<<10)
	var names []string
	for {
		n, err := unix.ReadDirent(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			slices.Sort(names)
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

const FileFlags = unix.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

func CloseFD(fd int) { unix.Close(fd) }

// NonceDigits is the length of a restore's nonce, in hex digits.
const NonceDigits = 16

func NewNonce() string {
	var b [NonceDigits / 2]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

const DirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC

// Exists reports whether there is a file at path. The error is that it could not be looked up.
func Exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
