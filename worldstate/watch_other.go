//go:build unix && !linux

package worldstate

import "errors"

var errNoNotifier = errors.New("this system does not tell of changes")

// newNotifier: only Linux has one so far; elsewhere worlds are scanned.
func newNotifier(int, string) (notifier, error) { return nil, errNoNotifier }
