//go:build unix && !linux && !darwin

package fsys

import "golang.org/x/sys/unix"

// Fsync returns when what was written to fd is durable.
func Fsync(fd int) error { return Retry(func() error { return unix.Fsync(fd) }) }
