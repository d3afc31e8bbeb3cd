package worldstate

import (
	"bytes"
	"encoding/hex"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// refChunk is how many numbered refs are made room for at once; a number that
// is further beyond the others is kept by its name.
const refChunk = 256

// refSet is refs by name. Each step of each task has one, for as long as the
// store lives: names that end in a number take 20 bytes. The zero refSet is
// empty.
type refSet struct {
	named    map[string]hash
	numbered map[string][]*[refChunk]hash // by what stands before the number
	n        int
}

// refNumber takes a name like refs/anamnesis/task/12 apart.
func refNumber(name string) (before string, n int, ok bool) {
	i := strings.LastIndexByte(name, '/') + 1
	n, err := strconv.Atoi(name[i:])
	return name[:i], n, err == nil && n >= 0 && strconv.Itoa(n) == name[i:]
}

// get gives the id of a name, zero where there is none.
func (s *refSet) get(name string) hash {
	if before, n, ok := refNumber(name); ok {
		if chunks := s.numbered[before]; n/refChunk < len(chunks) {
			return chunks[n/refChunk][n%refChunk]
		}
	}
	return s.named[name]
}

// set changes one ref; a zero id removes it.
func (s *refSet) set(name string, h hash) {
	was := s.get(name)
	if h == was {
		return
	}
	switch {
	case was.isZero():
		s.n++
	case h.isZero():
		s.n--
	}
	if before, n, ok := refNumber(name); ok {
		chunks := s.numbered[before]
		if n/refChunk == len(chunks) {
			chunks = s.grow(before)
		}
		if n/refChunk < len(chunks) {
			chunks[n/refChunk][n%refChunk] = h
			return
		}
	}
	if h.isZero() {
		delete(s.named, name)
		return
	}
	if s.named == nil {
		s.named = make(map[string]hash)
	}
	s.named[name] = h
}

// grow makes room for the next numbers, and takes in those that were kept by
// name.
func (s *refSet) grow(before string) []*[refChunk]hash {
	if s.numbered == nil {
		s.numbered = make(map[string][]*[refChunk]hash)
	}
	at, chunk := len(s.numbered[before]), new([refChunk]hash)
	for name, h := range s.named {
		if b, n, ok := refNumber(name); ok && b == before && n/refChunk == at {
			chunk[n%refChunk] = h
			delete(s.named, name)
		}
	}
	s.numbered[before] = append(s.numbered[before], chunk)
	return s.numbered[before]
}

// appendSorted appends a line for each ref, its id and its name, in the order
// of the names' bytes. All names stand in one text: there may be tens of
// thousands, every few saves.
func (s *refSet) appendSorted(dst []byte) []byte {
	type line struct {
		from, to int // of its name
		id       hash
	}
	lines := make([]line, 0, s.n)
	var names []byte
	for name, h := range s.named {
		from := len(names)
		names = append(names, name...)
		lines = append(lines, line{from, len(names), h})
	}
	for before, chunks := range s.numbered {
		for i, chunk := range chunks {
			for j, h := range chunk {
				if h.isZero() {
					continue
				}
				from := len(names)
				names = strconv.AppendInt(append(names, before...), int64(i*refChunk+j), 10)
				lines = append(lines, line{from, len(names), h})
			}
		}
	}
	slices.SortFunc(lines, func(a, b line) int { return bytes.Compare(names[a.from:a.to], names[b.from:b.to]) })
	for _, l := range lines {
		dst = append(hex.AppendEncode(dst, l.id[:]), ' ')
		dst = append(append(dst, names[l.from:l.to]...), '\n')
	}
	return dst
}

// all gives the refs in no order.
func (s *refSet) all() iter.Seq2[string, hash] {
	return func(yield func(string, hash) bool) {
		for name, h := range s.named {
			if !yield(name, h) {
				return
			}
		}
		for before, chunks := range s.numbered {
			for i, chunk := range chunks {
				for j, h := range chunk {
					if !h.isZero() && !yield(before+strconv.Itoa(i*refChunk+j), h) {
						return
					}
				}
			}
		}
	}
}
