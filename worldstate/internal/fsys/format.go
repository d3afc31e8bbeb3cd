package fsys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Format is the layout of a store, a number in the file FormatName of StateDir:
//
//	0  the file does not exist; our packs have no .keep and so count as the user's
//	2  refs are in files of their own and in a log over packed-refs
//	3  refs are in packed-refs
const Format = 3

// FormatName is the file in StateDir that holds the store's format.
const FormatName = "format"

// ReadFormat returns a store's format. A format later than Format is an error.
func ReadFormat(store string) (int, error) {
	path := filepath.Join(store, StateDir, FormatName)
	data, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the store's format: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || n < 2 {
		return 0, fmt.Errorf("read the store's format: %s holds %.20q and not a number", path, data)
	}
	if n > Format {
		return n, fmt.Errorf("store %s has format %d, and this program reads formats up to %d; "+
			"use a newer version of anamnesis", store, n, Format)
	}
	return n, nil
}

// WriteFormat records a store's format durably.
func WriteFormat(store string, n int) error {
	return WriteFileDurably(filepath.Join(store, StateDir, FormatName), fmt.Appendf(nil, "%d\n", n))
}
