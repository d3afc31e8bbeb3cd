package opstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	opsDirName    = "ops"
	segmentSuffix = ".jsonl"
	segmentDigits = 16
	// scanBufferBytes is the most of a segment that is read at once.
	scanBufferBytes = 1 << 20
)

// segmentName is a segment's path relative to the stream's directory.
func segmentName(first uint64) string {
	return fmt.Sprintf("%s/%0*d%s", opsDirName, segmentDigits, first, segmentSuffix)
}

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, filepath.FromSlash(segmentName(first)))
}

// parseSegmentName reads a segment's first seq from its file name.
func parseSegmentName(name string) (uint64, bool) {
	if len(name) != segmentDigits+len(segmentSuffix) || name[segmentDigits:] != segmentSuffix {
		return 0, false
	}
	for i := range segmentDigits {
		if name[i] < '0' || name[i] > '9' {
			return 0, false
		}
	}
	first, err := strconv.ParseUint(name[:segmentDigits], 10, 64)
	return first, err == nil && first > 0
}

// listSegments returns the first seqs of a stream's segments, ascending, and
// the names in ops/ that are none. A directory without ops/ is an error that
// is fs.ErrNotExist.
func listSegments(fsys FS, dir string) (segs []uint64, others []string, err error) {
	names, err := fsys.ReadDir(filepath.Join(dir, opsDirName))
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		if first, ok := parseSegmentName(name); ok {
			segs = append(segs, first)
		} else {
			others = append(others, name)
		}
	}
	slices.Sort(segs)
	slices.Sort(others)
	return segs, others, nil
}

// lineState says what lineReader.next found.
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
	f          File
	off        int64 // of buf[start] in the file
	buf        []byte
	start, end int
}

// newLineReader reads from off on; size is the file's, or what is known of it.
func newLineReader(f File, off, size int64) *lineReader {
	n := min(max(size-off, maxLineBytes+2), scanBufferBytes)
	return &lineReader{f: f, off: off, buf: make([]byte, n)}
}

// next returns the next line without its newline, valid until the next call,
// and where it begins. The error is the file's.
func (r *lineReader) next() (line []byte, off int64, state lineState, err error) {
	off = r.off
	searched, long := 0, false
	for {
		if i := bytes.IndexByte(r.buf[r.start+searched:r.end], '\n'); i >= 0 {
			n := searched + i
			line = r.buf[r.start : r.start+n]
			r.skip(n + 1)
			if long || n > maxLineBytes {
				return nil, off, lineLong, nil
			}
			return line, off, lineWhole, nil
		}
		searched = r.end - r.start
		if searched > maxLineBytes {
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
	if n > 0 || errors.Is(err, io.EOF) {
		return n > 0, nil
	}
	return false, err
}
