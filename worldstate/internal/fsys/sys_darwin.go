package fsys

import "golang.org/x/sys/unix"

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
