package vectors

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// embedBatch is how many texts an embedder is given at once at most. One that is
// asked over a network begins with firstBatch; the number is doubled after an
// answer within quickBatch and halved after a slower one, so that a command that
// does not wait long has something to keep for the next.
const (
	embedBatch = 64
	firstBatch = 8
	quickBatch = time.Second / 2
)

// Cache stores in .index the vectors of an external embedder by content hash, in one file for each
// embedder's fingerprint. A missing, damaged or foreign file costs time only, and a failed write
// is not an error.
type Cache struct {
	Dir       string // "": nothing is stored
	WriteFile func(path string, data []byte) error

	fingerprint string // of what is loaded
	known       map[[sha256.Size]byte][]float32
	made        int // vectors that an embedder made, counted
	unsaved     int
}

// vectorsFile is the form of the file of an embedder's vectors.
type vectorsFile struct {
	Embedder string // its fingerprint
	Dims     int
	Hashes   []byte // of the texts, one after the other
	Vectors  []byte // in the same order
}

// vectors returns the vector of each document, computing those not cached.
func (c *Cache) vectors(ctx context.Context, e Embedder, docs []Document) ([][]float32, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	if c.fingerprint != e.Fingerprint() {
		c.load(e.Fingerprint())
	}
	defer c.save(e.Fingerprint()) // after an error, too: the next try continues from here
	out := make([][]float32, len(docs))
	var missing []int
	for i, d := range docs {
		if out[i] = c.known[d.Hash]; out[i] == nil {
			missing = append(missing, i)
		}
	}
	batch := firstBatch
	for len(missing) > 0 {
		n := min(batch, len(missing))
		begin := time.Now()
		texts := make([]string, n)
		for j, i := range missing[:n] {
			texts[j] = docs[i].Text()
		}
		vecs, err := e.EmbedCards(ctx, texts)
		if err == nil && len(vecs) != n {
			err = fmt.Errorf("%d vectors for %d texts", len(vecs), n)
		}
		if err != nil {
			return nil, fmt.Errorf("embed cards: %w", err)
		}
		for j, i := range missing[:n] {
			out[i], c.known[docs[i].Hash] = vecs[j], vecs[j]
		}
		c.made, c.unsaved = c.made+n, c.unsaved+n
		missing = missing[n:]
		if batch = max(batch/2, 1); time.Since(begin) < quickBatch {
			batch = min(batch*4, embedBatch)
		}
	}
	return out, nil
}

// share replaces a cached vector by the collection's copy, so that memory holds it once.
func (c *Cache) share(text [sha256.Size]byte, v []float32) {
	if v != nil {
		c.known[text] = v
	}
}

func (c *Cache) vectorsPath(fp string) string {
	sum := sha256.Sum256([]byte(fp))
	return filepath.Join(c.Dir, fmt.Sprintf("vectors-%x.bin", sum[:10]))
}

func (c *Cache) load(fp string) {
	c.fingerprint, c.unsaved = fp, 0
	c.known = make(map[[sha256.Size]byte][]float32)
	var f vectorsFile
	if c.Dir == "" || !readFile(c.vectorsPath(fp), &f) || f.Embedder != fp {
		return
	}
	n := len(f.Hashes) / sha256.Size
	all := floats(f.Vectors, n*f.Dims)
	if all == nil || f.Dims < 0 {
		return
	}
	for i := range n {
		c.known[[sha256.Size]byte(f.Hashes[i*sha256.Size:])] = all[i*f.Dims : (i+1)*f.Dims]
	}
}

func (c *Cache) save(fp string) {
	if c.Dir == "" || c.unsaved == 0 {
		return
	}
	f := vectorsFile{Embedder: fp}
	for h, v := range c.known {
		f.Dims, f.Hashes, f.Vectors = len(v), append(f.Hashes, h[:]...), appendFloats(f.Vectors, v)
	}
	if data, err := encodeFile(f); err == nil && c.WriteFile(c.vectorsPath(fp), data) == nil {
		c.unsaved = 0
	}
}

// Clear forgets everything and removes the files.
func (c *Cache) Clear() error {
	c.fingerprint, c.known, c.unsaved = "", nil, 0
	var errs []error
	// The last four are of earlier versions.
	for _, kind := range []string{"vectors", "model", "own", "lexical", "cards"} {
		old, err := fs.Glob(os.DirFS(c.Dir), kind+"*.bin")
		errs = append(errs, err)
		for _, name := range old {
			errs = append(errs, os.Remove(filepath.Join(c.Dir, name)))
		}
	}
	return errors.Join(errs...)
}
