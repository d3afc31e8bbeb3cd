package retrieval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"path/filepath"
	"slices"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
	"anamnesis/knowledge_base/retrieval/internal/vectors"
	"anamnesis/knowledge_base/sealed"
)

// The inverted indexes are stored beside the vectors; package lexical says what that is worth.
// The file lists its documents by id and hash of the
// text, so that changed ones are left out and indexed again.
const (
	// lexicalMagic names the form of the file and what words and grams make of a
	// text; a test tells when its number must be raised.
	lexicalMagic = "anamnesis lexical 4\n"
	lexicalFile  = "lexical-4.bin"
	// The file is written when a document of it is gone, or when at least lexicalFew
	// documents, and one in lexicalSlack, are not in it.
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
				x.file = r
				return missing, gone
			}
			r.Close()
			x.words, x.grams = lexical.NewWords(), lexical.NewGrams()
		}
	}
	slices.SortFunc(x.docs, byID)
	x.place(x.docs)
	missing = make([]int, len(x.docs))
	for i := range missing {
		missing[i] = i
	}
	return missing, 0
}

// takeLexical reads what [Index.keepLexical] wrote. The documents take the slots that
// they have in the file, so that its tables are used as they are unless one of them is
// gone. When ok is false the inverted indexes hold anything.
func (x *Index) takeLexical(r *sealed.Reader) (missing []int, gone int, ok bool) {
	places := make([]int32, r.Count()) // by slot then: the slot now, or -1
	has := make([]bool, len(x.docs))
	docs := make([]Document, 0, len(x.docs))
	for i := range places {
		slot, known := x.slots[string(r.Bytes(r.Int()))]
		hash := r.Bytes(sha256.Size)
		if places[i] = -1; known && bytes.Equal(x.docs[slot].Hash[:], hash) && !has[slot] {
			places[i], has[slot] = int32(len(docs)), true
			docs = append(docs, x.docs[slot])
		} else {
			gone++
		}
	}
	taken := len(docs)
	for slot, d := range x.docs {
		if !has[slot] {
			missing = append(missing, len(docs))
			docs = append(docs, d)
		}
	}
	slices.SortFunc(docs[taken:], byID)
	x.place(docs)
	x.words.Take(r, places, len(docs))
	x.grams.Take(r, places, len(docs))
	return missing, gone, r.OK()
}

func byID(a, b Document) int { return cmp.Compare(a.ID, b.ID) }

// place assigns the documents to slots in the order of the list.
func (x *Index) place(docs []Document) {
	x.docs = docs
	for i := range docs {
		x.slots[docs[i].ID] = i
	}
}

// keepLexical stores the inverted indexes, which hold all documents, if they differ enough
// from the stored file. A failed write only makes the next Fill slower.
func (x *Index) keepLexical(c *vectors.Cache, missing, gone int) {
	if c == nil || gone == 0 && (missing < lexicalFew || missing*lexicalSlack < len(x.docs)) {
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
