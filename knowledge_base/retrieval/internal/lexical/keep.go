package lexical

import (
	"bytes"

	"anamnesis/knowledge_base/sealed"
)

// Keep adds the inverted index to w: the length of each text, then the terms' table as it
// is, with the number of its terms and where its blocks begin.
func (x *Index[K]) Keep(w *sealed.Writer) {
	x.settleAll()
	for _, n := range x.Lengths {
		w.Uint(uint64(n))
	}
	t := &x.Settled
	w.Uint(uint64(len(t.Packed)))
	w.Bytes(t.Packed)
	w.Uint(uint64(t.terms))
	last := 0
	for _, at := range t.blocks {
		w.Uint(uint64(at - last))
		last = at
	}
}

// Take reads what Keep wrote into an empty index of n slots. places maps the stored texts
// to their present slots, in the same order; -1 means that a text is gone.
func (x *Index[K]) Take(r *sealed.Reader, places []int32, n int) {
	x.Lengths = make([]int32, n)
	whole := true
	for _, slot := range places {
		length := r.Uint()
		if length > 2*MaxIndexedRunes {
			r.Fail()
			return
		}
		if slot < 0 {
			whole = false
			continue
		}
		x.Lengths[slot] = int32(length)
		x.Docs++
		x.Total += int64(length)
	}
	packed := r.Bytes(r.Count())
	t := table{Packed: packed[:len(packed):len(packed)]}
	terms := r.Uint()
	if terms > uint64(len(packed)) {
		r.Fail()
		return
	}
	t.terms = int(terms)
	t.blocks = make([]int, (t.terms+tableBlock-1)/tableBlock)
	at := uint64(0)
	for i := range t.blocks {
		if at += r.Uint(); at > uint64(len(packed)) {
			r.Fail()
			return
		}
		t.blocks[i] = int(at)
	}
	switch {
	case !r.OK():
	case whole: // the file's sum vouches for it
		x.Settled = t
	case !x.takeRest(t.Packed, places):
		r.Fail()
	}
}

// takeRest takes the texts of a table that are not gone.
func (x *Index[K]) takeRest(kept []byte, places []int32) bool {
	w := tableWriter{table: table{Packed: make([]byte, 0, len(kept))}}
	var packed []byte
	found := int64(0)
	in := TableReader{All: kept}
	for in.Next() {
		if w.terms > 0 && bytes.Compare(in.Key, w.key) <= 0 {
			return false
		}
		p := postings{Packed: packed[:0]}
		c, last := ReadPostings(in.List), int32(-1)
		for c.Next() {
			if c.Slot <= last || int(c.Slot) >= len(places) || c.Tf <= 0 || c.Tf > 2*MaxIndexedRunes {
				return false
			}
			last = c.Slot
			if at := places[c.Slot]; at >= 0 {
				p.enter(at, c.Tf)
				found += int64(c.Tf)
			}
		}
		if packed = p.Packed; p.Df > 0 {
			w.add(in.Key, p.Df, packed)
		}
		if c.bad {
			return false
		}
	}
	x.Settled = w.done()
	return !in.Bad && found == x.Total
}
