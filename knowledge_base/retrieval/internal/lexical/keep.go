package lexical

import (
	"bytes"
	"cmp"
	"slices"

	"anamnesis/knowledge_base/sealed"
)

// Keep adds the inverted index to w: the length of each text, then the terms'
// table as it is.
func (x *Index[K]) Keep(w *sealed.Writer) {
	x.settleAll()
	for _, n := range x.Lengths {
		w.Uint(uint64(n))
	}
	w.Uint(uint64(len(x.Settled.Packed)))
	w.Bytes(x.Settled.Packed)
}

// Take reads what keep wrote into an empty index of n slots. places maps the stored texts to
// their present slots; -1 means that a text is gone.
func (x *Index[K]) Take(r *sealed.Reader, places []int32, n int) {
	x.Lengths = make([]int32, n)
	for _, slot := range places {
		length := r.Uint()
		if length > 2*MaxIndexedRunes {
			r.Fail()
			return
		}
		if slot >= 0 {
			x.Lengths[slot] = int32(length)
			x.Docs++
			x.Total += int64(length)
		}
	}
	kept := r.Bytes(r.Count())
	var w tableWriter
	var list []posting
	var packed []byte
	found, moved := int64(0), false // not moved: the table is taken as it is, and the file's sum vouches for it
	for was, slot := range places {
		moved = moved || int(slot) != was
	}
	in := TableReader{All: kept}
	if !moved {
		for at := 0; in.Next(); at = in.at {
			w.skip(at)
		}
		if in.Bad {
			r.Fail()
		}
		w.Packed = kept[:len(kept):len(kept)]
		x.Settled = w.done()
		return
	}
	w.Packed = make([]byte, 0, len(kept))
	for in.Next() {
		var ok bool
		if list, ok = takePostings(in.List, places, list[:0]); !ok || w.terms > 0 && bytes.Compare(in.Key, w.key) <= 0 {
			r.Fail()
			return
		}
		if len(list) == 0 {
			continue
		}
		for _, at := range list {
			found += int64(at.tf)
		}
		packed = repack(packed[:0], list)
		w.add(in.Key, len(list), packed)
	}
	if in.Bad || found != x.Total {
		r.Fail()
	}
	x.Settled = w.done()
}

func repack(into []byte, list []posting) []byte {
	p := newPacker(into)
	for _, at := range list {
		p.enter(at.slot, at.tf)
	}
	return p.done()
}

// posting is one text of a term's postings.
type posting struct{ slot, tf int32 }

// takePostings reads one term's postings, with the texts where they are now.
func takePostings(packed []byte, places []int32, into []posting) (list []posting, ok bool) {
	list = into
	sorted, last := true, int32(-1)
	c := ReadPostings(packed)
	for c.Next() {
		if c.Slot <= last || int(c.Slot) >= len(places) || c.Tf <= 0 || c.Tf > 2*MaxIndexedRunes {
			return nil, false
		}
		last = c.Slot
		if at := places[c.Slot]; at >= 0 {
			sorted = sorted && (len(list) == 0 || list[len(list)-1].slot < at)
			list = append(list, posting{at, c.Tf})
		}
	}
	if !sorted {
		slices.SortFunc(list, func(a, b posting) int { return cmp.Compare(a.slot, b.slot) })
	}
	return list, !c.bad
}
