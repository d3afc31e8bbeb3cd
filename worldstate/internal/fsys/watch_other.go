//go:build unix && !linux

package fsys

import "errors"

var errNoNotifier = errors.New("this system reports no changes")

// NewNotifier returns an error: only Linux has a notifier so far. Worlds are scanned elsewhere.
func NewNotifier(int) (Notifier, error) { return nil, errNoNotifier }
