package retrieval

import (
	"crypto/sha256"
	"path/filepath"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
	"anamnesis/knowledge_base/retrieval/internal/vectors"
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
func (x *Index) fillLexical(c *vectors.Cache) (missing []int, gone int) {
	if c != nil {
		if r, ok := sealed.Open(filepath.Join(c.Dir, lexicalFile), lexicalMagic); ok {
			if missing, gone, ok = x.takeLexical(r); ok {
				return missing, gone
			}
			x.words, x.grams = lexical.NewWords(), lexical.NewGrams()
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
	x.words.Take(r, places, len(x.docs))
	x.grams.Take(r, places, len(x.docs))
	return missing, gone, r.OK()
}

// keepLexical writes the inverted indexes, which hold all documents, where
// enough of them differ from what is kept. Without it the next Fill takes
// longer.
func (x *Index) keepLexical(c *vectors.Cache, differ int) {
	if c == nil || differ < lexicalFew || differ*lexicalSlack < len(x.docs) {
		return
	}
	w := sealed.NewWriter(lexicalMagic)
	w.Uint(uint64(len(x.docs)))
	for i := range x.docs {
		w.Text(x.docs[i].ID)
		w.Bytes(x.docs[i].Hash[:])
	}
	x.words.Keep(w)
	x.grams.Keep(w)
	c.Write(filepath.Join(c.Dir, lexicalFile), w)
}
