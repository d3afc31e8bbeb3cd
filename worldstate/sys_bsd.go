//go:build unix && !linux && !darwin

package worldstate

import "golang.org/x/sys/unix"

// fsync returns when what was written to fd is durable.
func fsync(fd int) error { return again(func() error { return unix.Fsync(fd) }) }

// The values of whence for lseek: the next data, the next hole.
const (
	seekData = 3
	seekHole = 4
)
