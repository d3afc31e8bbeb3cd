//go:build !unix

package disk

import (
	"errors"
	"os"
)

// tryFlock refuses: without a lock two writers would destroy the stream.
func tryFlock(*os.File) (bool, error) {
	return false, errors.New("writing an operation stream needs flock, which this platform does not have")
}

func processExists(int) bool { return false }
