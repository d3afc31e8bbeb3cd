package fsys

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// inotify implements Notifier. It is read when a scan starts, not by a goroutine: once a read
// returns nothing, every earlier event was seen.
type inotify struct {
	fd  int
	buf []byte
}

// Writes through a shared memory map are reported, if at all, when the file is closed.
const inotifyMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_ATTRIB | unix.IN_CLOSE_WRITE |
	unix.IN_MOVED_FROM | unix.IN_MOVED_TO | unix.IN_DELETE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// localFileSystem reports whether only this kernel changes a file system of this kind.
func localFileSystem(kind int64) bool {
	switch uint32(kind) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC,
		unix.F2FS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC, zfsMagic, bcachefsMagic:
		return true
	}
	return false
}

const (
	zfsMagic      = 0x2fc12fc1
	bcachefsMagic = 0xca451a4e
)

// NewNotifier returns a notifier for the file system of the directory root.
func NewNotifier(root int) (Notifier, error) {
	var fs unix.Statfs_t
	if err := unix.Fstatfs(root, &fs); err != nil {
		return nil, fmt.Errorf("statfs: %w", err)
	}
	if !localFileSystem(int64(fs.Type)) {
		return nil, fmt.Errorf("%w (%#x)", errRemote, uint32(fs.Type))
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("inotify: %w", err)
	}
	return &inotify{fd: fd, buf: make([]byte, 64<<10)}, nil
}

// Watch names the directory by its descriptor, so that no path is resolved again.
func (n *inotify) Watch(fd int) (int32, error) {
	wd, err := unix.InotifyAddWatch(n.fd, "/proc/self/fd/"+strconv.Itoa(fd), inotifyMask)
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("%w (%s)", errWatchesSpent, limitFile)
	}
	return int32(wd), err
}

const limitFile = "/proc/sys/fs/inotify/max_user_watches"

// Unwatch ignores an error: the watch ends with its directory.
func (n *inotify) Unwatch(wd int32) { _, _ = unix.InotifyRmWatch(n.fd, uint32(wd)) }

func (n *inotify) Close() { unix.Close(n.fd) }

func (n *inotify) Read(each func(Event)) error {
	for {
		got, err := unix.Read(n.fd, n.buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return nil
		case err != nil:
			return os.NewSyscallError("read", err)
		case got < unix.SizeofInotifyEvent:
			return fmt.Errorf("an event of %d bytes", got)
		}
		for rest := n.buf[:got]; len(rest) >= unix.SizeofInotifyEvent; {
			mask := binary.NativeEndian.Uint32(rest[4:])
			end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(rest[12:]))
			if end > len(rest) {
				return errors.New("an event cut short")
			}
			name, _, _ := strings.Cut(string(rest[unix.SizeofInotifyEvent:end]), "\x00")
			each(Event{
				Wd:       int32(binary.NativeEndian.Uint32(rest)),
				Name:     name,
				IsDir:    mask&unix.IN_ISDIR != 0,
				Came:     mask&(unix.IN_CREATE|unix.IN_MOVED_TO) != 0,
				MovedOut: mask&unix.IN_MOVED_FROM != 0,
				Unknown:  mask&unix.IN_IGNORED != 0,
				Overflow: mask&unix.IN_Q_OVERFLOW != 0,
				Lost:     mask&unix.IN_UNMOUNT != 0,
			})
			rest = rest[end:]
		}
	}
}
