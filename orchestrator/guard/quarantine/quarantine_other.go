//go:build !linux

package quarantine

// Quarantine is never made on this platform: there is no sandbox to escape.
type Quarantine struct{}

// Earlier is empty on this platform.
func (*Quarantine) Earlier() string { return "" }

// Recover finds nothing on this platform.
func Recover(_, _, _ string) string { return "" }

// Unexamined is empty on this platform.
func Unexamined(string) []Run { return nil }

// Named is empty on this platform.
func Named(_, _ string) string { return "" }
