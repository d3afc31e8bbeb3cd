package retrieval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"path/filepath"
	"slices"

	"anamnesis/knowledge_base/sealed"
)

// The inverted indexes are kept beside the vectors: making them takes some
// ten times as long as reading them. They are taken apart into documents by id
// and hash of the text, so that those that changed are left out and made anew.
const (
	// lexicalMagic names the form of the file and what words and grams make of a
	// text; a test tells when its number must be raised.
	lexicalMagic = "anamnesis lexical 2\n"
	lexicalFile  = "lexical-2.bin"
	// The file is written when at least lexicalFew documents, and one in
	// lexicalSlack, are not in it as they are.
	lexicalFew   = 64
	lexicalSlack = 20
)

// fillLexical enters all documents into the empty inverted indexes, from what
// is kept where it can. It returns the slots left to be entered, and how many
// documents that are kept are no more.
func (x *Index) fillLexical(c *vectorCache) (missing []int, gone int) {
	if c != nil {
		if r, ok := sealed.Open(filepath.Join(c.dir, lexicalFile), lexicalMagic); ok {
			if missing, gone, ok = x.takeLexical(r); ok {
				return missing, gone
			}
			x.words, x.grams = newWords(), newGrams()
		}
	}
	missing = make([]int, len(x.docs))
	for i := range missing {
		missing[i] = i
	}
	return missing, 0
}

// takeLexical reads what [Index.keepLexical] wrote. When ok is false the
// inverted indexes hold anything.
func (x *Index) takeLexical(r *sealed.Reader) (missing []int, gone int, ok bool) {
	places := make([]int32, r.Count()) // by slot then: the slot now, or -1
	has := make([]bool, len(x.docs))
	for i := range places {
		id := r.Text()
		var hash [sha256.Size]byte
		copy(hash[:], r.Bytes(len(hash)))
		places[i] = -1
		if slot, known := x.slots[id]; known && x.docs[slot].Hash == hash && !has[slot] {
			places[i], has[slot] = int32(slot), true
		} else {
			gone++
		}
	}
	for slot := range has {
		if !has[slot] {
			missing = append(missing, slot)
		}
	}
	x.words.take(r, places, len(x.docs))
	x.grams.take(r, places, len(x.docs))
	return missing, gone, r.OK()
}

// keepLexical writes the inverted indexes, which hold all documents, where
// enough of them differ from what is kept. Without it the next Fill takes
// longer.
func (x *Index) keepLexical(c *vectorCache, differ int) {
	if c == nil || differ < lexicalFew || differ*lexicalSlack < len(x.docs) {
		return
	}
	w := sealed.NewWriter(lexicalMagic)
	w.Uint(uint64(len(x.docs)))
	for i := range x.docs {
		w.Text(x.docs[i].ID)
		w.Bytes(x.docs[i].Hash[:])
	}
	x.words.keep(w)
	x.grams.keep(w)
	c.write(filepath.Join(c.dir, lexicalFile), w)
}

// keep adds the inverted index to w: the length of each text, then the terms'
// table as it is.
func (x *bm25[K]) keep(w *sealed.Writer) {
	x.settleAll()
	for _, n := range x.lengths {
		w.Uint(uint64(n))
	}
	w.Uint(uint64(len(x.settled.packed)))
	w.Bytes(x.settled.packed)
}

// take reads what keep wrote into an empty index of n slots; places are where
// the texts are now, -1 for nowhere.
func (x *bm25[K]) take(r *sealed.Reader, places []int32, n int) {
	x.lengths = make([]int32, n)
	for _, slot := range places {
		length := r.Uint()
		if length > 2*maxIndexedRunes {
			r.Fail()
			return
		}
		if slot >= 0 {
			x.lengths[slot] = int32(length)
			x.docs++
			x.total += int64(length)
		}
	}
	kept := r.Bytes(r.Count())
	w := tableWriter{table: table{packed: make([]byte, 0, len(kept))}}
	var list []posting
	var packed []byte
	found, moved := int64(0), false // not moved: the table is taken as it is, and the file's sum vouches for it
	for was, slot := range places {
		moved = moved || int(slot) != was
	}
	in := tableReader{all: kept}
	if !moved {
		for at := 0; in.next(); at = in.at {
			w.skip(at)
		}
		if in.bad {
			r.Fail()
		}
		w.packed = append(w.packed, kept...)
		x.settled = w.done()
		return
	}
	for in.next() {
		var ok bool
		if list, ok = takePostings(in.list, places, list[:0]); !ok || w.terms > 0 && bytes.Compare(in.key, w.key) <= 0 {
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
		w.add(in.key, len(list), packed)
	}
	if in.bad || found != x.total {
		r.Fail()
	}
	x.settled = w.done()
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
	c := readPostings(packed)
	for c.next() {
		if c.slot <= last || int(c.slot) >= len(places) || c.tf <= 0 || c.tf > 2*maxIndexedRunes {
			return nil, false
		}
		last = c.slot
		if at := places[c.slot]; at >= 0 {
			sorted = sorted && (len(list) == 0 || list[len(list)-1].slot < at)
			list = append(list, posting{at, c.tf})
		}
	}
	if !sorted {
		slices.SortFunc(list, func(a, b posting) int { return cmp.Compare(a.slot, b.slot) })
	}
	return list, !c.bad
}
