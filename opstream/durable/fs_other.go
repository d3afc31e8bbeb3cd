//go:build !linux

package durable

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// datasync is the platform's strongest sync (F_FULLFSYNC on macOS).
func datasync(f *os.File) error { return f.Sync() }

// Identity tells a file or directory from the others that exist; empty: it cannot be looked at.
func Identity(path string) string {
	var s unix.Stat_t
	if unix.Stat(path, &s) != nil {
		return ""
	}
	return fmt.Sprint(s.Ino)
}
