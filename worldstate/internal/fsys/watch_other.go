//go:build unix && !linux

package fsys

import "errors"

var errNoNotifier = errors.New("this system does not tell of changes")

// NewNotifier: only Linux has one so far; elsewhere worlds are scanned.
func NewNotifier(int, string) (Notifier, error) { return nil, errNoNotifier }
