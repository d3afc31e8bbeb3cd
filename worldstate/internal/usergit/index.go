package usergit

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// DecodeIndex returns the paths of a git index of version 2, 3 or 4, relative to the top of the
// working tree. A split or sparse index is an error.
func DecodeIndex(data []byte) (paths []string, err error) {
	if n := len(data) - sha1.Size; n >= 0 && bytes.Equal(data[n:], make([]byte, sha1.Size)) {
		// With index.skipHash, git writes zeros in place of a checksum, which the library does not know.
		sum := sha1.Sum(data[:n])
		data = append(data[:n:n], sum[:]...)
	}
	var idx index.Index
	err = index.NewDecoder(bytes.NewReader(data)).Decode(&idx)
	switch {
	case errors.Is(err, index.ErrUnknownExtension):
		return nil, errors.New("it is split or sparse; 'git update-index --no-split-index' or " +
			"'git sparse-checkout reapply --no-sparse-index' rewrites it")
	case err != nil:
		return nil, fmt.Errorf("not an index this program can read: %w", err)
	}
	for _, e := range idx.Entries {
		paths = append(paths, e.Name)
	}
	return paths, nil
}
