//go:build !linux

package quarantine

// Quarantine is never made here: commands without a sandbox do what they like.
type Quarantine struct{}

// Earlier is empty here.
func (*Quarantine) Earlier() string { return "" }
