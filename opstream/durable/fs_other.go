//go:build !linux

package durable

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// datasync is the platform's strongest sync (F_FULLFSYNC on macOS).
func datasync(f *os.File) error { return f.Sync() }

// Identity identifies a file or directory among those that exist.
func Identity(path string) string {
	var s unix.Stat_t
	_ = unix.Stat(path, &s)
	return fmt.Sprint(s.Ino)
}
