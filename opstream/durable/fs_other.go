//go:build !linux

package durable

import "os"

// datasync is the platform's strongest sync (F_FULLFSYNC on macOS).
func datasync(f *os.File) error { return f.Sync() }
