package retrieval

import (
	"crypto/sha256"
	"encoding/binary"
	"path/filepath"

	"anamnesis/knowledge_base/sealed"
)

// The inverted indexes are kept beside the vectors: making them takes some
// ten times as long as reading them. They are taken apart into documents by id
// and hash of the text, so that those that changed are left out and made anew.
const (
	// lexicalMagic names the form of the file and what words and grams make of a
	// text; a test tells when its number must be raised.
	lexicalMagic = "anamnesis lexical 1\n"
	lexicalFile  = "lexical-1.bin"
	// The file is written when at least lexicalFew documents, and one in
	// lexicalSlack, are not in it as they are.
	lexicalFew   = 64
	lexicalSlack = 20
)

// fillLexical enters all documents into the empty inverted indexes, from what
// is kept where it can. It gives the slots left to be entered, and how many
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
		if slot, known := x.slots[id]; known && x.docs[slot].hash == hash && !has[slot] {
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
	x.words.take(r, places, len(x.docs), func() string { return r.Text() })
	x.grams.take(r, places, len(x.docs), func() uint64 {
		if b := r.Bytes(8); b != nil {
			return binary.LittleEndian.Uint64(b)
		}
		return 0
	})
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
		w.Bytes(x.docs[i].hash[:])
	}
	x.words.keep(w, w.Text)
	x.grams.keep(w, func(g uint64) { w.Bytes(binary.LittleEndian.AppendUint64(nil, g)) })
	c.write(filepath.Join(c.dir, lexicalFile), w)
}

// keep adds the inverted index to w: the length of each text, then each
// term's postings, packed as they are.
func (x *bm25[K]) keep(w *sealed.Writer, key func(K)) {
	for _, n := range x.lengths {
		w.Uint(uint64(n))
	}
	bytes := 0
	for _, list := range x.lists {
		bytes += len(list.packed)
	}
	w.Uint(uint64(bytes))
	w.Uint(uint64(len(x.terms)))
	var room [binary.MaxVarintLen64]byte
	for k := range x.terms {
		key(k)
		packed := x.list(k, room[:]).packed
		w.Uint(uint64(len(packed)))
		w.Bytes(packed)
	}
}

// take reads what keep wrote into an empty index of n slots; places are where
// the texts are now, -1 for nowhere.
func (x *bm25[K]) take(r *sealed.Reader, places []int32, n int, key func() K) {
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
	// One piece of memory for all; a list that grows leaves it.
	all := make([]byte, 0, r.Count())
	terms := r.Count()
	x.terms = make(map[K]int32, terms)
	x.lists = make([]postings, 0, terms)
	var scratch []byte
	found, held := int64(0), 0
	for range terms {
		k := key()
		list, occurs := takeList(r, places, scratch[:0])
		if !r.OK() {
			return
		}
		scratch = list.packed
		found += occurs
		if occurs == 0 {
			continue
		}
		if held++; occurs == 1 {
			x.terms[k] = alone(list.last)
			continue
		}
		from := len(all)
		all = append(all, list.packed...)
		list.packed = all[from:len(all):len(all)]
		x.terms[k] = int32(len(x.lists))
		x.lists = append(x.lists, list)
	}
	if held != len(x.terms) || found != x.total {
		r.Fail()
	}
}

// takeList reads one term's postings into the memory given.
func takeList(r *sealed.Reader, places []int32, into []byte) (list postings, occurs int64) {
	list.packed = into
	kept := sealed.NewReader(r.Bytes(r.Count()))
	for slot := int32(0); kept.Left() > 0; {
		v, tf := kept.Uint(), uint64(1)
		if v&1 == 1 {
			tf = kept.Uint()
		}
		slot += way(v)
		if !kept.OK() || slot < 0 || int(slot) >= len(places) || tf == 0 || tf > 2*maxIndexedRunes {
			r.Fail()
			return list, 0
		}
		if at := places[slot]; at >= 0 {
			list.enter(at, int(tf))
			occurs += int64(tf)
		}
	}
	return list, occurs
}
