package retrieval

import (
	"crypto/sha256"
	"encoding/binary"
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
			x.words, x.grams = newBM25[string](wordsB), newBM25[uint64](gramsB)
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
// term's postings as steps from slot to slot and counts.
func (x *bm25[K]) keep(w *sealed.Writer, key func(K)) {
	for _, n := range x.lengths {
		w.Uint(uint64(n))
	}
	names := make([]K, len(x.lists))
	for k, t := range x.terms {
		names[t] = k
	}
	w.Uint(uint64(len(names)))
	for t, k := range names {
		list := &x.lists[t]
		slices.Sort(list.slots)
		key(k)
		w.Uint(uint64(list.df))
		last := int32(0)
		list.each(func(slot int32, tf int) {
			w.Uint(uint64(slot - last))
			w.Uint(uint64(tf))
			last = slot
		})
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
	terms := r.Count()
	x.terms = make(map[K]int32, terms)
	x.lists = make([]postings, 0, terms)
	// One piece of memory for all; a list that grows leaves it.
	all := make([]int32, 0, x.total)
	for range terms {
		k := key()
		from := len(all)
		var df int32
		if all, df = takeList(r, places, all); !r.OK() {
			return
		}
		if df == 0 {
			continue
		}
		x.terms[k] = int32(len(x.lists))
		x.lists = append(x.lists, postings{slots: all[from:len(all):len(all)], df: df})
	}
	if len(x.lists) != len(x.terms) || int64(len(all)) != x.total {
		r.Fail()
	}
}

// takeList reads one term's postings behind all, which has room for them.
func takeList(r *sealed.Reader, places, all []int32) ([]int32, int32) {
	slot, df := uint64(0), int32(0)
	for range r.Count() {
		slot += r.Uint()
		tf := r.Uint()
		if slot >= uint64(len(places)) {
			r.Fail()
			return all, 0
		}
		at := places[slot]
		if at < 0 {
			continue
		}
		if tf == 0 || tf > uint64(cap(all)-len(all)) {
			r.Fail()
			return all, 0
		}
		for range tf {
			all = append(all, at)
		}
		df++
	}
	return all, df
}
