package fsys

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// IsErrno reports whether an error is one of some numbers.
func IsErrno(err error, list ...unix.Errno) bool {
	return slices.ContainsFunc(list, func(e unix.Errno) bool { return errors.Is(err, e) })
}

// Exhausted reports whether the system had no descriptor or no memory left for
// us, which says nothing about what was to be read.
func Exhausted(err error) bool { return IsErrno(err, unix.EMFILE, unix.ENFILE, unix.ENOMEM) }

// OpenFile is os.Open; where too many files are open it says what to do.
func OpenFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if IsErrno(err, unix.EMFILE, unix.ENFILE) {
		err = fmt.Errorf("%w; allow more of them (ulimit -n)", err)
	}
	return f, err
}

// OpenBeneath opens the directory rel (or "" for the root itself) beneath the
// directory rootfd, following no symbolic link on the way.
func OpenBeneath(rootfd int, rel string) (int, error) {
	if rel == "" {
		rel = "."
	}
	return openPart(rootfd, rel)
}

// openStepwise is OpenBeneath by one openat a component.
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

// Retry calls f until no signal interrupts it.
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
const maxLinkBytes = 1 << 16

func Readlinkat(dirfd int, name string) ([]byte, error) {
	for size := 256; size <= maxLinkBytes; size *= 4 {
		buf := make([]byte, size)
		n, err := unix.Readlinkat(dirfd, name, buf)
		if err != nil {
			return nil, err
		}
		if n < size {
			return buf[:n], nil
		}
	}
	return nil, fmt.Errorf("link target over %d bytes", maxLinkBytes)
}

// renameChecked is RenameNoReplace in two steps. What appears between them is
// replaced only if it is an empty directory.
func renameChecked(dirfd int, from, to string) error {
	if _, err := Lstatat(dirfd, to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(dirfd, from, dirfd, to)
}

// WriteFileDurably replaces a file in one step and returns when the
// new content and its name are durable.
func WriteFileDurably(path string, data []byte) error {
	temp, err := WriteTemp(filepath.Dir(path), data)
	if err == nil {
		if err = os.Rename(temp, path); err != nil {
			os.Remove(temp)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return SyncDir(filepath.Dir(path))
}

// WriteTemp writes a file of the store, durably, under a temporary name in dir.
func WriteTemp(dir string, data []byte) (path string, err error) {
	f, err := os.CreateTemp(dir, TempPrefix)
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err == nil {
		err = Fsync(int(f.Fd()))
	}
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(f.Name())
	}
	return f.Name(), err
}

// TempPrefix begins the name of every temporary file in the store; old ones are
// removed at the next save. It does not begin with "tmp_": files of that name a
// git prune takes away while they are being written.
const TempPrefix = "anamnesis_tmp_"

func SyncDir(dir string) error {
	fd, err := Openat(unix.AT_FDCWD, dir, DirFlags, 0)
	if err == nil {
		err = Fsync(fd)
		CloseFD(fd)
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// ReadNames reads a directory's names, sorted.
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

// SyncPath makes a file durable that another program wrote.
func SyncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("sync %s: %w", path, err)
	}
	return nil
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

// Exists reports whether a file is there. That it cannot be looked at is the error.
func Exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
