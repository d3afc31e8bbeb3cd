//go:build !linux

package durable

// ProcessStart is unknown on this platform.
func ProcessStart(int) uint64 { return 0 }
