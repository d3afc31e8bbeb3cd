package fsys

import "golang.org/x/sys/unix"

// Fsync returns when what was written to fd is durable. fsync(2) hands it to the
// drive; only F_FULLFSYNC has the drive empty its cache. A file system without
// that, such as SMB, has no more than fsync to offer.
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
