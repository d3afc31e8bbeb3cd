package objects

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zlib"

	"anamnesis/worldstate/internal/gitfmt"
)

// openLoose starts to read an object that git keeps in a file of its own.
func (s *Store) openLoose(h gitfmt.Hash) (gitfmt.ObjectType, int64, io.ReadCloser, error) {
	id := h.String()
	f, err := os.Open(filepath.Join(s.Dir, "objects", id[:2], id[2:]))
	if errors.Is(err, os.ErrNotExist) {
		return 0, 0, nil, ErrNoObject
	}
	if err != nil {
		return 0, 0, nil, err
	}
	z, err := zlib.NewReader(f)
	if err != nil {
		f.Close()
		return 0, 0, nil, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	in := bufio.NewReader(z)
	head, err := in.ReadSlice(0) // an error if it is longer than the buffer
	kind, length, _ := strings.Cut(strings.TrimSuffix(string(head), "\x00"), " ")
	size, serr := strconv.ParseUint(length, 10, 63)
	for t := gitfmt.CommitObject; err == nil && serr == nil && t <= gitfmt.TagObject; t++ {
		if kind == t.String() {
			return t, int64(size), looseReader{in, f}, nil
		}
	}
	f.Close()
	return 0, 0, nil, fmt.Errorf("read %s: not a git object", f.Name())
}

type looseReader struct {
	io.Reader
	io.Closer
}
