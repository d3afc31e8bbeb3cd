package lexical

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sort"
)

// tableBlock is how many terms a place in [table.blocks] stands for: a look-up reads half as
// many on average.
const tableBlock = 16

// table is terms in ascending order, each with its postings, in one piece of memory, which a
// file holds as it is: a search in a new process maps it and indexes no card again. A table is
// made as a whole; texts can be taken out of it. Of each term it holds
//
//	how long its key is
//	the key
//	how many bytes of postings follow, and how many texts they have
//	the postings
type table struct {
	Packed []byte
	blocks []int // where each tableBlock terms begin
	terms  int
}

// tableWriter makes a table of terms given in ascending order.
type tableWriter struct {
	table
	key []byte // the last one
}

func (w *tableWriter) add(key []byte, df int32, packed []byte) {
	if w.terms%tableBlock == 0 {
		w.blocks = append(w.blocks, len(w.Packed))
	}
	w.Packed = append(binary.AppendUvarint(w.Packed, uint64(len(key))), key...)
	w.Packed = binary.AppendUvarint(binary.AppendUvarint(w.Packed, uint64(len(packed))), uint64(df))
	w.Packed = append(w.Packed, packed...)
	w.key = append(w.key[:0], key...)
	w.terms++
}

// done returns the table in as much memory as it needs.
func (w *tableWriter) done() table {
	w.Packed, w.blocks = slices.Clone(w.Packed), slices.Clone(w.blocks)
	return w.table
}

// TableReader reads a table's terms in order. After impossible bytes it is at its end, and Bad is
// set.
type TableReader struct {
	All  []byte
	at   int // of the next term
	Key  []byte
	List []byte // the term's postings, in the table's memory
	Df   int32  // how many texts they have
	dfAt int    // where that number is
	Bad  bool
}

func (r *TableReader) Next() bool {
	if r.at >= len(r.All) {
		return false
	}
	r.Key = r.bytes(r.number())
	size := r.number()
	r.dfAt = r.at
	r.Df = int32(r.number())
	r.List = r.bytes(size)
	return !r.Bad
}

// number reads a varint that is a number of bytes, or of texts.
func (r *TableReader) number() int {
	n, size := binary.Uvarint(r.All[r.at:])
	if size <= 0 || n > uint64(len(r.All)) {
		r.Bad = true
		return 0
	}
	r.at += size
	return int(n)
}

func (r *TableReader) bytes(n int) []byte {
	if r.Bad || n > len(r.All)-r.at {
		r.Bad = true
		return nil
	}
	r.at += n
	return r.All[r.at-n : r.at : r.at]
}

// find moves r to a term and reports whether the table has it.
func (t *table) find(key []byte, r *TableReader) bool {
	block := sort.Search(len(t.blocks), func(i int) bool { return bytes.Compare(t.first(i), key) > 0 }) - 1
	if block < 0 {
		return false
	}
	*r = TableReader{All: t.Packed, at: t.blocks[block]}
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
	own, size := binary.Uvarint(t.Packed[at:])
	at += size
	return t.Packed[at : at+int(own)]
}

// remove takes a text out of the postings r is at, in their place, and reports whether it was
// in them.
func (r *TableReader) remove(slot int32) bool {
	rest, had := without(r.List, slot)
	if !had {
		return false
	}
	clear(r.List[copy(r.List, rest.Packed):])
	df, at := rest.Df, r.dfAt // the smaller number takes as many bytes as the old one
	for ; r.All[at] >= 0x80; at++ {
		r.All[at] = byte(df) | 0x80
		df >>= 7
	}
	r.All[at] = byte(df)
	return true
}
