//go:build !linux && !darwin

package history

import "errors"

func exchange(a, b string) error { return errors.ErrUnsupported }
