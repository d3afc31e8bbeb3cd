package durable

import (
	"errors"
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
