//go:build unix && !linux && !darwin

package worldstate

import "golang.org/x/sys/unix"

// fsync returns when what was written to fd is durable.
func fsync(fd int) error { return again(func() error { return unix.Fsync(fd) }) }
