package retrieval

import (
	"bytes"
	"encoding/binary"
	"sort"
)

// tableBlock is how many terms share a key that is written whole: a look-up
// reads half as many on average.
const tableBlock = 16

// table is terms in ascending order, each with its postings, in one piece of
// memory: a third of what a map of them takes. It is made as a whole; texts
// can be taken out of it. Of each term it holds
//
//	how many bytes of its key are those of the key before, times 16, plus how
//	many follow; 15 for either says that it is a varint after that byte
//	the rest of the key
//	how many bytes of postings follow
//	of long postings, how many texts they have
//	the postings
type table struct {
	packed []byte
	blocks []int // where each tableBlock terms begin
	terms  int
}

// longPostings is from how many bytes on postings say how many texts they have;
// shorter ones are counted.
const longPostings = 8

// tableWriter makes a table of terms given in ascending order.
type tableWriter struct {
	table
	key []byte // the last one
}

func (w *tableWriter) add(key []byte, df int, packed []byte) {
	shared := 0
	if w.terms%tableBlock == 0 {
		w.blocks = append(w.blocks, len(w.packed))
	} else {
		for shared < len(key) && shared < len(w.key) && key[shared] == w.key[shared] {
			shared++
		}
	}
	own := len(key) - shared
	w.packed = append(w.packed, byte(min(shared, 15)<<4|min(own, 15)))
	for _, n := range []int{shared, own} {
		if n >= 15 {
			w.packed = binary.AppendUvarint(w.packed, uint64(n))
		}
	}
	w.packed = append(w.packed, key[shared:]...)
	w.packed = binary.AppendUvarint(w.packed, uint64(len(packed)))
	if len(packed) >= longPostings {
		w.packed = binary.AppendUvarint(w.packed, uint64(df))
	}
	w.packed = append(w.packed, packed...)
	w.key = append(w.key[:0], key...)
	w.terms++
}

// skip counts a term that is in the table's bytes already, at.
func (w *tableWriter) skip(at int) {
	if w.terms%tableBlock == 0 {
		w.blocks = append(w.blocks, at)
	}
	w.terms++
}

// done returns the table in as much memory as it needs.
func (w *tableWriter) done() table {
	w.packed, w.blocks = exact(w.packed), exact(w.blocks)
	return w.table
}

// exact returns a slice that holds on to no more than its elements.
func exact[E any](s []E) []E {
	if cap(s)-len(s) <= len(s)/64 {
		return s
	}
	return append(make([]E, 0, len(s)), s...)
}

// tableReader goes through a table's terms. After what cannot be, it is at its
// end and bad.
type tableReader struct {
	all  []byte
	at   int // of the next term
	key  []byte
	list []byte // the term's postings, in the table's memory
	dfAt int    // where their number stands; 0: nowhere
	bad  bool
}

func (r *tableReader) next() bool {
	if r.at >= len(r.all) {
		return false
	}
	head := int(r.all[r.at])
	r.at++
	shared, own := head>>4, head&15
	if shared == 15 {
		shared = r.number()
	}
	if own == 15 {
		own = r.number()
	}
	rest := r.bytes(own)
	if shared > len(r.key) {
		r.bad = true
	}
	if r.bad {
		return false
	}
	r.key = append(r.key[:shared], rest...)
	size := r.number()
	if r.dfAt = 0; size >= longPostings {
		r.dfAt = r.at
		r.number()
	}
	r.list = r.bytes(size)
	return !r.bad
}

// number reads a varint that is a number of bytes, or of texts.
func (r *tableReader) number() int {
	n, size := binary.Uvarint(r.all[r.at:])
	if size <= 0 || n > uint64(len(r.all))*maxRun {
		r.bad = true
		return 0
	}
	r.at += size
	return int(n)
}

// maxRun bounds the texts that one byte of postings may stand for.
const maxRun = 1 << 24

func (r *tableReader) bytes(n int) []byte {
	if r.bad || n > len(r.all)-r.at {
		r.bad = true
		return nil
	}
	r.at += n
	return r.all[r.at-n : r.at : r.at]
}

// df is how many texts the present term's postings have.
func (r *tableReader) df() int {
	if r.dfAt > 0 {
		n, _ := binary.Uvarint(r.all[r.dfAt:])
		return int(n)
	}
	n := 0
	for c := readPostings(r.list); c.next(); {
		n++
	}
	return n
}

// find goes to a term.
func (t *table) find(key []byte, r *tableReader) bool {
	block := sort.Search(len(t.blocks), func(i int) bool { return bytes.Compare(t.first(i), key) > 0 }) - 1
	if block < 0 {
		return false
	}
	*r = tableReader{all: t.packed, at: t.blocks[block], key: r.key[:0]}
	for n := min(tableBlock, t.terms-block*tableBlock); n > 0 && r.next(); n-- {
		if order := bytes.Compare(r.key, key); order >= 0 {
			return order == 0
		}
	}
	return false
}

// first is the key that a block begins with.
func (t *table) first(block int) []byte {
	at := t.blocks[block]
	own := int(t.packed[at] & 15)
	at++
	if own == 15 {
		n, size := binary.Uvarint(t.packed[at:])
		own, at = int(n), at+size
	}
	return t.packed[at : at+own]
}

// remove takes a text out of the postings r stands at, in their place. Where
// what is left takes more room than they have (a run that is broken), it gives it,
// for the caller to keep elsewhere, and the term has none here. there is false,
// and nothing done, for a text they do not have.
func (r *tableReader) remove(slot int32) (left postings, there bool) {
	rest := newPacker(make([]byte, 0, len(r.list)))
	for c := readPostings(r.list); c.next(); {
		if c.slot == slot {
			there = true
		} else {
			rest.enter(c.slot, c.tf)
		}
	}
	if !there {
		return left, false
	}
	here := rest.postings()
	if len(here.packed) > len(r.list) {
		left, here = here, left
	}
	clear(r.list[copy(r.list, here.packed):])
	if r.dfAt > 0 {
		r.setDF(int(here.df))
	}
	return left, true
}

// setDF replaces the number of texts by a smaller one, in as many bytes.
func (r *tableReader) setDF(df int) {
	at := r.dfAt
	for r.all[at] >= 0x80 {
		r.all[at] = byte(df) | 0x80
		df >>= 7
		at++
	}
	r.all[at] = byte(df)
}
