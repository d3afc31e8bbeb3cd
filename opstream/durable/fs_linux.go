package durable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// datasync is fdatasync(2): a file's bytes, and of its metadata what is needed
// to read them back, its size included.
func datasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var syncErr error
	if err := conn.Control(func(fd uintptr) {
		for {
			if syncErr = unix.Fdatasync(int(fd)); !errors.Is(syncErr, unix.EINTR) {
				return
			}
		}
	}); err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync", syncErr)
}

// Identity identifies a file or directory, also among later ones with its path and inode. The device's number is no
// part of it, because a start of the machine can change that.
func Identity(path string) string {
	var s unix.Statx_t
	_ = unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &s)
	return fmt.Sprintf("%d born %d.%09d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
}
