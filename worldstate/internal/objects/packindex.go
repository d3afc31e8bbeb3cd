package objects

import (
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"

	"anamnesis/worldstate/internal/fsys"
	"anamnesis/worldstate/internal/gitfmt"
)

const (
	// IndexEntries is the length of an index's header: magic, version and 256 counts.
	IndexEntries = 8 + 4*256
	IndexEnd     = 2 * sha1.Size // the checksums of the pack and of the index
	far          = 1 << 31       // larger offsets are in a separate table
)

// Entry is an object in a pack with the size of its bytes there, its header included.
type Entry struct {
	gitfmt.PackItem
	Size int64
}

// ReadPackIndex reads and checks a version 2 index. It returns the items, sorted by id, and the
// pack's checksum.
func ReadPackIndex(path string) (items []gitfmt.PackItem, pack gitfmt.Hash, err error) {
	f, err := fsys.OpenFile(path)
	if err != nil {
		return nil, pack, err
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, pack, err
	}
	bad := func(what string) ([]gitfmt.PackItem, gitfmt.Hash, error) {
		return nil, pack, fmt.Errorf("pack index %s: %s", path, what)
	}
	if len(data) < IndexEntries+IndexEnd || !bytes.HasPrefix(data, []byte("\xfftOc\x00\x00\x00\x02")) {
		return bad("not a version 2 index")
	}
	body := data[:len(data)-sha1.Size]
	if sum := sha1.Sum(body); !bytes.Equal(sum[:], data[len(body):]) {
		return bad("wrong checksum")
	}
	word := func(at int) uint32 { return binary.BigEndian.Uint32(data[at:]) }
	n, end := int(word(IndexEntries-4)), len(data)-IndexEnd
	crcs := IndexEntries + 20*n
	offsets := crcs + 4*n
	large := offsets + 4*n
	if large > end {
		return bad("cut short")
	}
	items = make([]gitfmt.PackItem, n)
	for i := range items {
		e := &items[i]
		e.Hash, e.Crc, e.Off = gitfmt.Hash(data[IndexEntries+20*i:][:20]), word(crcs+4*i), int64(word(offsets+4*i))
		if i > 0 && bytes.Compare(items[i-1].Hash[:], e.Hash[:]) > 0 {
			return bad("unsorted")
		}
		if e.Off >= far { // an index into the table of 64-bit offsets
			at := large + 8*int(e.Off-far)
			if at+8 > end {
				return bad("an offset beyond its table")
			}
			e.Off = int64(binary.BigEndian.Uint64(data[at:]))
		}
	}
	return items, gitfmt.Hash(data[end:][:sha1.Size]), nil
}
