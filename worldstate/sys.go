//go:build unix

package worldstate

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// exhausted reports whether the system had no descriptor or no memory left for
// us, which says nothing about what was to be read.
func exhausted(err error) bool { return isErrno(err, unix.EMFILE, unix.ENFILE, unix.ENOMEM) }

// openFile is os.Open; where too many files are open it says what to do.
func openFile(path string) (*os.File, error) {
	f, err := os.Open(path)
	if isErrno(err, unix.EMFILE, unix.ENFILE) {
		err = fmt.Errorf("%w; allow more of them (ulimit -n)", err)
	}
	return f, err
}

// pathMax is PATH_MAX of Linux, the NUL at the end included: no system call takes
// a longer path.
const pathMax = 4096

// openBeneath opens the directory rel (or "" for the root itself) beneath the
// directory rootfd, following no symbolic link on the way. A path of any length
// is opened, a long one in parts.
func openBeneath(rootfd int, rel string) (int, error) {
	if rel == "" {
		rel = "."
	}
	if len(rel) < pathMax {
		return openPart(rootfd, rel)
	}
	at := rootfd
	for rel != "" {
		part := rel
		if len(rel) >= pathMax {
			if part = dir(rel[:pathMax]); part == "" {
				part, _, _ = strings.Cut(rel, "/") // the kernel refuses the name
			}
		}
		fd, err := openPart(at, part)
		if at != rootfd {
			unix.Close(at)
		}
		if err != nil {
			return -1, err
		}
		at, rel = fd, strings.TrimPrefix(rel[len(part):], "/")
	}
	return at, nil
}

// openStepwise is openBeneath by one openat a component.
func openStepwise(rootfd int, rel string) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := openat(rootfd, ".", flags, 0)
	if err != nil || rel == "." {
		return fd, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := openat(fd, name, flags, 0)
		unix.Close(fd)
		if err != nil {
			return -1, err
		}
		fd = next
	}
	return fd, nil
}

// again calls f until no signal interrupts it.
func again(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func openat(fd int, name string, flags int, mode uint32) (int, error) {
	for {
		n, err := unix.Openat(fd, name, flags, mode)
		if err != unix.EINTR {
			return n, err
		}
	}
}

// stamp is what stat tells of a file: two equal stamps, not racy, are the
// same bytes.
type stamp struct {
	size, mtime, ctime int64 // bytes, ns, ns
	ino, dev           uint64
	mode               uint32 // type and permission bits
	nlink              uint64
	uid, gid           uint32
}

func (s stamp) isDir() bool     { return s.mode&unix.S_IFMT == unix.S_IFDIR }
func (s stamp) isRegular() bool { return s.mode&unix.S_IFMT == unix.S_IFREG }
func (s stamp) isLink() bool    { return s.mode&unix.S_IFMT == unix.S_IFLNK }

// sameContent ignores what a link or a chmod elsewhere changes, but not ctime.
func (s stamp) sameContent(o stamp) bool {
	return s.size == o.size && s.mtime == o.mtime && s.ctime == o.ctime && s.ino == o.ino && s.dev == o.dev && s.mode == o.mode
}

func newStamp(st *unix.Stat_t) stamp {
	return stamp{
		size: int64(st.Size), mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
		ino: uint64(st.Ino), dev: uint64(st.Dev), mode: uint32(st.Mode), nlink: uint64(st.Nlink),
		uid: st.Uid, gid: st.Gid,
	}
}

func fstat(fd int) (stamp, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return newStamp(&st), err
}

// maxLinkBytes bounds a link's target; Linux's own bound is one page.
const maxLinkBytes = 1 << 16

func readlinkat(dirfd int, name string) ([]byte, error) {
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

// renameChecked is renameNoReplace in two steps. What appears between them is
// replaced only if it is an empty directory.
func renameChecked(dirfd int, from, to string) error {
	if _, err := lstatat(dirfd, to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(dirfd, from, dirfd, to)
}

// writeFileDurably replaces a file of ours in one step and returns when the
// new content and its name are durable.
func writeFileDurably(path string, data []byte) error {
	fd, err := openat(unix.AT_FDCWD, filepath.Dir(path), dirFlags, 0)
	if err == nil {
		err = replaceDurably(fd, filepath.Base(path), data)
		closeFD(fd)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func replaceDurably(dirfd int, name string, data []byte) error {
	temp := tempPrefix + newNonce()
	fd, err := openat(dirfd, temp, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	err = writeAll(fd, data)
	if err == nil {
		err = fsync(fd)
	}
	if cerr := unix.Close(fd); err == nil {
		err = cerr
	}
	if err == nil {
		err = unix.Renameat(dirfd, temp, dirfd, name)
	}
	if err != nil {
		unix.Unlinkat(dirfd, temp, 0)
		return err
	}
	return fsync(dirfd)
}

// writeAll writes all of data to a descriptor.
func writeAll(fd int, data []byte) error {
	for len(data) > 0 {
		n, err := unix.Write(fd, data)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// tempPrefix begins the name of every temporary file in the store; old ones are
// removed at the next save. It does not begin with "tmp_": files of that name a
// git prune takes away from under whoever writes them.
const tempPrefix = "anamnesis_tmp_"

func syncDir(dir string) error {
	fd, err := openat(unix.AT_FDCWD, dir, dirFlags, 0)
	if err == nil {
		err = fsync(fd)
		closeFD(fd)
	}
	if err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}

// readNames reads a directory's names, sorted.
func readNames(fd int) ([]string, error) {
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
