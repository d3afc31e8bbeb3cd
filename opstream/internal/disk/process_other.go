//go:build !linux

package disk

// ProcessStart is unknown on this platform.
func ProcessStart(int) uint64 { return 0 }
