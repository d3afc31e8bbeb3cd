//go:build !linux

package quarantine

// Quarantine is never made on this platform: there is no sandbox to escape.
type Quarantine struct{}

// Earlier is empty on this platform.
func (*Quarantine) Earlier() string { return "" }
