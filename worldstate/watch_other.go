//go:build unix && !linux

package worldstate

// newNotifier: only Linux has one so far; elsewhere worlds are scanned.
func newNotifier(int) (notifier, error) { return nil, errNoNotifier }
