package worldstate

import (
	"bytes"
	"encoding/hex"
	"iter"
	"maps"
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

// refLine is a ref on its way into packed-refs; its name stands in a text with
// all the others: there may be tens of thousands, every few saves.
type refLine struct {
	from, to int
	id       hash
}

// appendSorted appends a line for each ref, its id and its name, in the order
// of the names' bytes.
func (s *refSet) appendSorted(dst []byte) []byte {
	lines := make([]refLine, 0, s.n)
	var names []byte
	add := func(name string, h hash) {
		from := len(names)
		names = append(names, name...)
		lines = append(lines, refLine{from, len(names), h})
	}
	for _, name := range slices.Sorted(maps.Keys(s.named)) {
		add(name, s.named[name])
	}
	named := len(lines)
	for _, before := range slices.Sorted(maps.Keys(s.numbered)) {
		chunks := s.numbered[before]
		inDigitOrder(len(chunks)*refChunk, func(n int) {
			if h := chunks[n/refChunk][n%refChunk]; !h.isZero() {
				from := len(names)
				names = strconv.AppendInt(append(names, before...), int64(n), 10)
				lines = append(lines, refLine{from, len(names), h})
			}
		})
	}
	name := func(l refLine) []byte { return names[l.from:l.to] }
	byName := func(a, b refLine) int { return bytes.Compare(name(a), name(b)) }
	lines = merged(lines[:named], lines[named:], byName)
	if !slices.IsSortedFunc(lines, byName) { // tasks of which one's name is the beginning of another's path
		slices.SortFunc(lines, byName)
	}
	for _, l := range lines {
		dst = append(hex.AppendEncode(dst, l.id[:]), ' ')
		dst = append(append(dst, name(l)...), '\n')
	}
	return dst
}

// inDigitOrder calls f with the numbers from 0 to n-1 in the order of their
// decimal digits: 0, 1, 10, 100, 11, …
func inDigitOrder(n int, f func(int)) {
	var from func(k int)
	from = func(k int) {
		for ; k < n; k++ {
			f(k)
			if k > 0 {
				from(10 * k)
			}
			if k%10 == 9 {
				return
			}
		}
	}
	from(0)
}

// merged puts two sorted lists together.
func merged[T any](a, b []T, compare func(a, b T) int) []T {
	out := make([]T, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if compare(a[0], b[0]) <= 0 {
			out, a = append(out, a[0]), a[1:]
		} else {
			out, b = append(out, b[0]), b[1:]
		}
	}
	return append(append(out, a...), b...)
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
