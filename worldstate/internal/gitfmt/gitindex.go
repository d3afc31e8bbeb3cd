package gitfmt

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
)

// The format is described in git's documentation (gitformat-index).
const (
	indexHead    = 12 // "DIRC", version, number of entries
	IndexFixed   = 62 // ten words of stat, the id, the flags
	flagExtended = 1 << 14
)

var ErrIndex = errors.New("not an index this program can read")

// DecodeIndex returns the paths of a git index of version 2, 3 or 4, relative to the top of the
// working tree. A split index, or one of a repository that does not use SHA-1, is an error.
func DecodeIndex(data []byte) (paths []string, err error) {
	if len(data) < indexHead+sha1.Size || string(data[:4]) != "DIRC" {
		return nil, ErrIndex
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if got := sha1.Sum(body); !bytes.Equal(got[:], sum) && !bytes.Equal(sum, make([]byte, sha1.Size)) { // zeros: index.skipHash
		return nil, fmt.Errorf("%w: bad checksum", ErrIndex)
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || int64(count) > int64(len(body))/IndexFixed {
		return nil, fmt.Errorf("%w: version %d, %d entries", ErrIndex, version, count)
	}
	d := indexDecoder{b: body[indexHead:], version: version}
	paths = make([]string, 0, count)
	for range count {
		if !d.entry() {
			return nil, fmt.Errorf("%w: cut short", ErrIndex)
		}
		paths = append(paths, d.last)
	}
	for len(d.b) >= 8 { // extensions: those in capitals are optional
		name, size := string(d.b[:4]), binary.BigEndian.Uint32(d.b[4:])
		if int64(size) > int64(len(d.b)-8) {
			return nil, fmt.Errorf("%w: cut short", ErrIndex)
		}
		switch {
		case name == "link":
			return nil, fmt.Errorf("%w: it is split; 'git update-index --no-split-index' joins it", ErrIndex)
		case name[0] < 'A' || name[0] > 'Z':
			return nil, fmt.Errorf("%w: extension %q", ErrIndex, name)
		}
		d.b = d.b[8+size:]
	}
	return paths, nil
}

type indexDecoder struct {
	b       []byte
	version uint32
	last    string // the path of the last entry
}

// entry reads one entry and keeps its path. ok is false if the entry is damaged.
func (d *indexDecoder) entry() (ok bool) {
	if len(d.b) < IndexFixed {
		return false
	}
	head := IndexFixed
	if binary.BigEndian.Uint16(d.b[60:])&flagExtended != 0 {
		if d.version < 3 || len(d.b) < IndexFixed+2 {
			return false
		}
		head += 2
	}
	rest := d.b[head:]
	prefix := ""
	if d.version == 4 {
		drop, n := indexVarint(rest)
		if n == 0 || drop > uint64(len(d.last)) {
			return false
		}
		rest, prefix = rest[n:], d.last[:len(d.last)-int(drop)]
	}
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return false
	}
	d.last = prefix + string(rest[:end])
	if d.version == 4 {
		d.b = rest[end+1:]
		return true
	}
	whole := (head + end + 8) &^ 7 // one to eight NULs up to a multiple of eight
	if whole > len(d.b) {
		return false
	}
	d.b = d.b[whole:]
	return true
}

// indexVarint decodes the number that begins a path in version 4; n is 0 if there is none.
func indexVarint(b []byte) (v uint64, n int) {
	for n < len(b) && n < 9 {
		c := b[n]
		n++
		v |= uint64(c & 0x7f)
		if c&0x80 == 0 {
			return v, n
		}
		v = (v + 1) << 7
	}
	return 0, 0
}
