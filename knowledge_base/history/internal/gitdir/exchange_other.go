//go:build !linux && !darwin

package gitdir

import "errors"

func Exchange(a, b string) error { return errors.ErrUnsupported }
