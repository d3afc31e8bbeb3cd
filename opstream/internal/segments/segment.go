// Package segments reads the files of a stream: lines in order and by reference, blobs, and
// the snapshot with its index of lines.
package segments

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"anamnesis/opstream/durable"
	"anamnesis/opstream/internal/wire"
)

const (
	OpsDirName = "ops"
	Suffix     = ".jsonl"
	Digits     = 16
	// ScanBufferBytes is the most of a segment that is read at once.
	ScanBufferBytes = 1 << 20
)

// Name is a segment's path relative to the stream's directory.
func Name(first uint64) string {
	return fmt.Sprintf("%s/%0*d%s", OpsDirName, Digits, first, Suffix)
}

func Path(dir string, first uint64) string {
	return filepath.Join(dir, filepath.FromSlash(Name(first)))
}

// ParseName reads a segment's first seq from its file name.
func ParseName(name string) (uint64, bool) {
	if len(name) != Digits+len(Suffix) || name[Digits:] != Suffix {
		return 0, false
	}
	first, err := strconv.ParseUint(name[:Digits], 10, 64) // accepts no sign
	return first, err == nil && first > 0
}

// List returns the first seqs of a stream's segments, ascending, and the other names in ops/.
// A directory without ops/ is an error that is fs.ErrNotExist.
func List(fsys durable.FS, dir string) (segs []uint64, others []string, err error) {
	names, err := fsys.ReadDir(filepath.Join(dir, OpsDirName))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if first, ok := ParseName(name); ok {
			segs = append(segs, first)
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(segs)
	slices.Sort(others)
	return segs, others, nil
}

// lineState is what lineReader.Next found.
type lineState int

const (
	lineWhole   lineState = iota // a line and its newline
	lineLong                     // longer than any line may be; skipped up to its newline
	linePartial                  // bytes without a newline up to the end
	lineEnd                      // the end, at a line's boundary
)

// lineReader reads a segment line by line through one buffer of fixed size,
// which holds more than the longest line.
type lineReader struct {
	f          durable.File
	off        int64 // of buf[start] in the file
	buf        []byte
	start, end int
}

// newLineReader reads from off on; size is the known size of the file.
func newLineReader(f durable.File, off, size int64) *lineReader {
	n := min(max(size-off, wire.MaxLineBytes+2), ScanBufferBytes)
	return &lineReader{f: f, off: off, buf: make([]byte, n)}
}

// Next returns the next line without its newline, valid until the next call,
// and where it begins. The error is the file's.
func (r *lineReader) Next() (line []byte, off int64, state lineState, err error) {
	off = r.off
	searched, long := 0, false
	for {
		if i := bytes.IndexByte(r.buf[r.start+searched:r.end], '\n'); i >= 0 {
			n := searched + i
			line = r.buf[r.start : r.start+n]
			r.skip(n + 1)
			if long || n > wire.MaxLineBytes {
				return nil, off, lineLong, nil
			}
			return line, off, lineWhole, nil
		}
		searched = r.end - r.start
		// A line beyond the limit is skipped up to its newline, so that Vouched can read the lines behind it.
		if searched > wire.MaxLineBytes {
			long = true
			r.skip(searched)
			searched = 0
		}
		more, err := r.fill()
		if err != nil {
			return nil, off, lineEnd, err
		}
		if more {
			continue
		}
		if searched == 0 && !long {
			return nil, off, lineEnd, nil
		}
		line = r.buf[r.start:r.end]
		r.skip(searched)
		return line, off, linePartial, nil
	}
}

func (r *lineReader) skip(n int) {
	r.start += n
	r.off += int64(n)
}

// fill reads more bytes behind the buffered ones; false at the file's end.
func (r *lineReader) fill() (bool, error) {
	if r.start > 0 {
		copy(r.buf, r.buf[r.start:r.end])
		r.end -= r.start
		r.start = 0
	}
	n, err := r.f.ReadAt(r.buf[r.end:], r.off+int64(r.end))
	r.end += n
	// A failure that comes with bytes occurs again at the next call, which then reads none.
	if n > 0 || errors.Is(err, io.EOF) {
		return n > 0, nil
	}
	return false, err
}

func FileSize(fsys durable.FS, path string) (int64, error) {
	f, err := fsys.Open(path, os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	size, err := f.Size()
	return size, errors.Join(err, f.Close())
}
