package retrieval

import (
	"crypto/sha256"
	"path/filepath"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
	"anamnesis/knowledge_base/retrieval/internal/vectors"
	"anamnesis/knowledge_base/sealed"
)

// The inverted indexes are stored beside the vectors: building them takes about ten
// times as long as reading them. The file lists its documents by id and hash of the
// text, so that changed ones are left out and indexed again.
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

// fillLexical fills the empty inverted indexes from the stored file as far as that is
// current. It returns the slots that remain to be indexed, and how many stored
// documents no longer exist.
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

// keepLexical stores the inverted indexes, which hold all documents, if enough of them
// differ from the stored file. A failed write only makes the next Fill slower.
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
