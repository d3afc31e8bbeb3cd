package lexical

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
	Packed []byte
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
		w.blocks = append(w.blocks, len(w.Packed))
	} else {
		for shared < len(key) && shared < len(w.key) && key[shared] == w.key[shared] {
			shared++
		}
	}
	own := len(key) - shared
	w.Packed = append(w.Packed, byte(min(shared, 15)<<4|min(own, 15)))
	for _, n := range []int{shared, own} {
		if n >= 15 {
			w.Packed = binary.AppendUvarint(w.Packed, uint64(n))
		}
	}
	w.Packed = append(w.Packed, key[shared:]...)
	w.Packed = binary.AppendUvarint(w.Packed, uint64(len(packed)))
	if len(packed) >= longPostings {
		w.Packed = binary.AppendUvarint(w.Packed, uint64(df))
	}
	w.Packed = append(w.Packed, packed...)
	w.key = append(w.key[:0], key...)
	w.terms++
}

// done returns the table in as much memory as it needs.
func (w *tableWriter) done() table {
	w.Packed, w.blocks = exact(w.Packed), exact(w.blocks)
	return w.table
}

// exact returns a slice that holds on to no more than its elements.
func exact[E any](s []E) []E {
	if cap(s)-len(s) <= len(s)/64 {
		return s
	}
	return append(make([]E, 0, len(s)), s...)
}

// TableReader goes through a table's terms. After what cannot be, it is at its
// end and bad.
type TableReader struct {
	All  []byte
	at   int // of the next term
	Key  []byte
	List []byte // the term's postings, in the table's memory
	dfAt int    // where their number stands; 0: nowhere
	Bad  bool
}

func (r *TableReader) Next() bool {
	if r.at >= len(r.All) {
		return false
	}
	head := int(r.All[r.at])
	r.at++
	shared, own := head>>4, head&15
	if shared == 15 {
		shared = r.number()
	}
	if own == 15 {
		own = r.number()
	}
	rest := r.bytes(own)
	if shared > len(r.Key) {
		r.Bad = true
	}
	if r.Bad {
		return false
	}
	r.Key = append(r.Key[:shared], rest...)
	size := r.number()
	if r.dfAt = 0; size >= longPostings {
		r.dfAt = r.at
		r.number()
	}
	r.List = r.bytes(size)
	return !r.Bad
}

// number reads a varint that is a number of bytes, or of texts.
func (r *TableReader) number() int {
	n, size := binary.Uvarint(r.All[r.at:])
	if size <= 0 || n > uint64(len(r.All))*maxRun {
		r.Bad = true
		return 0
	}
	r.at += size
	return int(n)
}

// maxRun bounds the texts that one byte of postings may represent.
const maxRun = 1 << 24

func (r *TableReader) bytes(n int) []byte {
	if r.Bad || n > len(r.All)-r.at {
		r.Bad = true
		return nil
	}
	r.at += n
	return r.All[r.at-n : r.at : r.at]
}

// Df is how many texts the present term's postings have.
func (r *TableReader) Df() int {
	if r.dfAt > 0 {
		n, _ := binary.Uvarint(r.All[r.dfAt:])
		return int(n)
	}
	n := 0
	for c := ReadPostings(r.List); c.Next(); {
		n++
	}
	return n
}

// find goes to a term.
func (t *table) find(key []byte, r *TableReader) bool {
	block := sort.Search(len(t.blocks), func(i int) bool { return bytes.Compare(t.first(i), key) > 0 }) - 1
	if block < 0 {
		return false
	}
	*r = TableReader{All: t.Packed, at: t.blocks[block], Key: r.Key[:0]}
	for n := min(tableBlock, t.terms-block*tableBlock); n > 0 && r.Next(); n-- {
		if order := bytes.Compare(r.Key, key); order >= 0 {
			return order == 0
		}
	}
	return false
}

// first is the key that a block begins with.
func (t *table) first(block int) []byte {
	at := t.blocks[block]
	own := int(t.Packed[at] & 15)
	at++
	if own == 15 {
		n, size := binary.Uvarint(t.Packed[at:])
		own, at = int(n), at+size
	}
	return t.Packed[at : at+own]
}

// remove takes a text out of the postings r is at, in their place. Where
// what is left takes more room than they have (a run that is broken), it returns it,
// for the caller to keep elsewhere, and the term has none here. there is false,
// and nothing done, for a text they do not have.
func (r *TableReader) remove(slot int32) (left postings, there bool) {
	rest := newPacker(make([]byte, 0, len(r.List)))
	for c := ReadPostings(r.List); c.Next(); {
		if c.Slot == slot {
			there = true
		} else {
			rest.enter(c.Slot, c.Tf)
		}
	}
	if !there {
		return left, false
	}
	here := rest.postings()
	if len(here.Packed) > len(r.List) {
		left, here = here, left
	}
	clear(r.List[copy(r.List, here.Packed):])
	if r.dfAt > 0 {
		r.setDF(int(here.Df))
	}
	return left, true
}

// setDF replaces the number of texts by a smaller one, in as many bytes.
func (r *TableReader) setDF(df int) {
	at := r.dfAt
	for r.All[at] >= 0x80 {
		r.All[at] = byte(df) | 0x80
		df >>= 7
		at++
	}
	r.All[at] = byte(df)
}
