package worldstate

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
)

// A split index holds what changed since another one, the shared index beside
// it: the extension "link" names that and says, by position, which of its entries
// are gone (gitformat-index describes it).

// trackedPaths lists what an index tracks, which stands at path; split or whole.
// look is called with every other file that decides it.
func trackedPaths(path string, data []byte, look func(string)) ([]string, error) {
	own, link, err := parseIndex(data)
	if err != nil {
		return nil, err
	}
	var out []string
	add := func(e *indexEntry) {
		if e.path != "" { // one that takes a shared entry's place has no name
			out = append(out, e.path)
		}
	}
	for i := range own {
		add(&own[i])
	}
	if link == nil || len(link) >= len(hash{}) && hash(link[:len(hash{})]).isZero() {
		return out, nil
	}
	if len(link) < len(hash{}) {
		return nil, fmt.Errorf("%w: its link is cut short", errIndex)
	}
	at := filepath.Join(filepath.Dir(path), "sharedindex."+hex.EncodeToString(link[:len(hash{})]))
	look(at)
	if data, err = os.ReadFile(at); err != nil {
		return nil, err
	}
	shared, more, err := parseIndex(data)
	if err != nil || more != nil {
		return nil, fmt.Errorf("%w: its shared index", errIndex)
	}
	gone, ok := ewahBits(link[len(hash{}):], len(shared))
	if !ok {
		return nil, fmt.Errorf("%w: its link", errIndex)
	}
	for i := range shared {
		if !gone[i] {
			add(&shared[i])
		}
	}
	return out, nil
}

// ewahBits reads the bitmap that b begins with, of n bits at most, as git's
// documentation of bitmaps describes it: words of 64 bits, each a marker of a run
// of equal words followed by words as they are. No b is an empty bitmap.
func ewahBits(b []byte, n int) (bits []bool, ok bool) {
	bits = make([]bool, n)
	if len(b) == 0 {
		return bits, true
	}
	const head, wordBytes, wordBits = 8, 8, 64
	if len(b) < head {
		return nil, false
	}
	words := int64(binary.BigEndian.Uint32(b[4:]))
	if words > int64(len(b)-head)/wordBytes {
		return nil, false
	}
	word := func(i int64) uint64 { return binary.BigEndian.Uint64(b[head+i*wordBytes:]) }
	at := int64(0)
	put := func(w uint64) bool {
		for i := range wordBits {
			if w>>i&1 == 0 {
				continue
			}
			if at+int64(i) >= int64(n) {
				return false
			}
			bits[at+int64(i)] = true
		}
		at += wordBits
		return true
	}
	for i := int64(0); i < words; {
		marker := word(i)
		run, literal := int64(marker>>1&(1<<32-1)), int64(marker>>33)
		i++
		if literal > words-i || run > int64(n)/wordBits+1 {
			return nil, false
		}
		for range run {
			if marker&1 == 0 {
				at += wordBits
			} else if !put(^uint64(0)) {
				return nil, false
			}
		}
		for range literal {
			if !put(word(i)) {
				return nil, false
			}
			i++
		}
	}
	return bits, true
}
