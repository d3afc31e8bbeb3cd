package worldstate

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"anamnesis/worldstate/internal/fsys"
)

// indexEntry is one path of a user's git index: what is tracked, and which
// blob a file was under which stat.
type indexEntry struct {
	path                  string // relative to the top of the working tree
	hash                  hash
	mode, ino, size       uint32 // inode and size cut to 32 bits
	mtimeSec, ctimeSec    uint32
	mtimeNsec, ctimeNsec  uint32
	assumeValid, skipTree bool
	intentToAdd           bool
	stage                 int
}

// The index is read as git's own documentation (gitformat-index) describes it.
const (
	indexHead        = 12 // "DIRC", version, number of entries
	indexFixed       = 62 // ten words of stat, the id, the flags
	flagAssumeValid  = 1 << 15
	flagExtended     = 1 << 14
	flagSkipWorktree = 1 << 14 // of the extended flags
	flagIntentToAdd  = 1 << 13
	modeTree         = 0o040000 // of a sparse index: a directory not checked out
)

var errIndex = errors.New("not an index this program can read")

// decodeIndex reads a git index of version 2, 3 or 4. One that is split, or of
// a repository with other ids than SHA-1's, is an error.
func decodeIndex(data []byte) ([]indexEntry, error) {
	list, link, err := parseIndex(data)
	if err == nil && link != nil {
		return nil, fmt.Errorf("%w: it is split", errIndex)
	}
	return list, err
}

// parseIndex is decodeIndex for an index that may be split: link is the extension
// that names the rest, nil where there is none.
func parseIndex(data []byte) (out []indexEntry, link []byte, err error) {
	if len(data) < indexHead+sha1.Size || string(data[:4]) != "DIRC" {
		return nil, nil, errIndex
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	if got := sha1.Sum(body); !bytes.Equal(got[:], sum) && !bytes.Equal(sum, make([]byte, sha1.Size)) { // zeros: index.skipHash
		return nil, nil, fmt.Errorf("%w: bad checksum", errIndex)
	}
	version, count := binary.BigEndian.Uint32(data[4:]), binary.BigEndian.Uint32(data[8:])
	if version < 2 || version > 4 || int64(count) > int64(len(body))/indexFixed {
		return nil, nil, fmt.Errorf("%w: version %d, %d entries", errIndex, version, count)
	}
	d := indexDecoder{b: body[indexHead:], version: version}
	out = make([]indexEntry, 0, count)
	for range count {
		e, ok := d.entry()
		if !ok {
			return nil, nil, fmt.Errorf("%w: cut short", errIndex)
		}
		out = append(out, e)
	}
	for len(d.b) >= 8 { // extensions: those in capitals may be left unread
		name, size := string(d.b[:4]), binary.BigEndian.Uint32(d.b[4:])
		if int64(size) > int64(len(d.b)-8) {
			return nil, nil, fmt.Errorf("%w: cut short", errIndex)
		}
		switch {
		case name == "link":
			link = d.b[8 : 8+size]
		case name[0] < 'A' || name[0] > 'Z':
			return nil, nil, fmt.Errorf("%w: extension %q", errIndex, name)
		}
		d.b = d.b[8+size:]
	}
	return out, link, nil
}

type indexDecoder struct {
	b       []byte
	version uint32
	last    string // the path before
}

func (d *indexDecoder) entry() (e indexEntry, ok bool) {
	if len(d.b) < indexFixed {
		return e, false
	}
	word := func(i int) uint32 { return binary.BigEndian.Uint32(d.b[4*i:]) }
	e.ctimeSec, e.ctimeNsec, e.mtimeSec, e.mtimeNsec = word(0), word(1), word(2), word(3)
	e.ino, e.mode, e.size = word(5), word(6), word(9)
	e.hash = hash(d.b[40:60])
	flags := binary.BigEndian.Uint16(d.b[60:])
	e.assumeValid, e.stage = flags&flagAssumeValid != 0, int(flags>>12&3)
	head := indexFixed
	if flags&flagExtended != 0 {
		if d.version < 3 || len(d.b) < indexFixed+2 {
			return e, false
		}
		more := binary.BigEndian.Uint16(d.b[62:])
		e.skipTree, e.intentToAdd = more&flagSkipWorktree != 0, more&flagIntentToAdd != 0
		head += 2
	}
	rest := d.b[head:]
	prefix := ""
	if d.version == 4 {
		drop, n := indexVarint(rest)
		if n == 0 || drop > uint64(len(d.last)) {
			return e, false
		}
		rest, prefix = rest[n:], d.last[:len(d.last)-int(drop)]
	}
	end := bytes.IndexByte(rest, 0)
	if end < 0 {
		return e, false
	}
	e.path = prefix + string(rest[:end])
	d.last = e.path
	if d.version == 4 {
		d.b = rest[end+1:]
		return e, true
	}
	whole := (head + end + 8) &^ 7 // one to eight NULs up to a multiple of eight
	if whole > len(d.b) {
		return e, false
	}
	d.b = d.b[whole:]
	return e, true
}

// indexVarint reads the number version 4 begins a path with; n is 0 when there
// is none.
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

// matches reports whether a file stands as it did when git read it. written is
// when the index was: a change in the same tick or later shows in no stamp, and
// git itself would read the file again.
func (e *indexEntry) matches(st fsys.Stamp, written time.Time) bool {
	mtime := time.Unix(int64(e.mtimeSec), int64(e.mtimeNsec))
	return e.stage == 0 && !e.assumeValid && !e.skipTree && !e.intentToAdd && st.IsRegular() &&
		e.mode&^0o777 == 0o100000 && (e.mtimeNsec != 0 || e.ctimeNsec != 0) && mtime.Before(written) &&
		uint32(st.Size) == e.size && uint32(st.Ino) == e.ino &&
		st.Mtime == mtime.UnixNano() && st.Ctime == time.Unix(int64(e.ctimeSec), int64(e.ctimeNsec)).UnixNano()
}
