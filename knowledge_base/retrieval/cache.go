package retrieval

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// embedBatch is how many texts an embedder is given at once.
const embedBatch = 64

// vectorCache keeps what is dear to compute in .index: vectors by content
// hash, one file an embedder fingerprint, and the trained built-in model.
// Losing it costs time only: a missing, damaged or foreign file is as good as
// none, and a failed write is not an error. A nil cache keeps nothing.
type vectorCache struct {
	dir       string
	writeFile func(path string, data []byte) error

	fingerprint string // of what is loaded
	known       map[[sha256.Size]byte][]float32
	unsaved     int
}

const (
	vectorsMagic = "anamnesis vectors 1\n"
	modelMagic   = "anamnesis lsa 1\n"
	// maxCacheBytes bounds what is read back from a cache file.
	maxCacheBytes = 1 << 30
)

// vectors gives the vector of each document, computing those not cached.
// total is how many documents there are in all.
func (c *vectorCache) vectors(ctx context.Context, e Embedder, docs []document, total int) ([][]float32, error) {
	if len(docs) == 0 {
		return nil, nil
	}
	_, transient := e.(*hashedBM25) // quicker to make than to read
	cached := c != nil && !transient
	if cached && c.fingerprint != e.Fingerprint() {
		c.load(e.Fingerprint())
	}
	out := make([][]float32, len(docs))
	var missing []int
	for i, d := range docs {
		if cached {
			out[i] = c.known[d.hash]
		}
		if out[i] == nil {
			missing = append(missing, i)
		}
	}
	for len(missing) > 0 {
		n := min(embedBatch, len(missing))
		texts := make([]string, n)
		for j, i := range missing[:n] {
			texts[j] = docs[i].Text
		}
		vecs, err := e.EmbedCards(ctx, texts)
		if err == nil && len(vecs) != n {
			err = fmt.Errorf("%d vectors for %d texts", len(vecs), n)
		}
		if err != nil {
			if cached && c.unsaved > 0 {
				c.save(e.Fingerprint()) // the next try goes on from here
			}
			return nil, fmt.Errorf("embed cards: %w", err)
		}
		for j, i := range missing[:n] {
			out[i] = vecs[j]
			if cached {
				c.known[docs[i].hash] = vecs[j]
				c.unsaved++
			}
		}
		missing = missing[n:]
	}
	// Rewriting the file for each new card would cost more than it saves where
	// vectors are made here.
	_, own := e.(*lsa)
	if cached && c.unsaved > 0 && (!own || c.unsaved > total/20) {
		c.save(e.Fingerprint())
	}
	return out, nil
}

func (c *vectorCache) vectorsPath(fp string) string {
	return filepath.Join(c.dir, "vectors-"+fileSafe(fp)+".bin")
}

func (c *vectorCache) modelPath(fp string) string {
	return filepath.Join(c.dir, "model-"+fileSafe(fp)+".bin")
}

// fileSafe makes a short name of any fingerprint.
func fileSafe(fp string) string {
	sum := sha256.Sum256([]byte(fp))
	return hex.EncodeToString(sum[:10])
}

func (c *vectorCache) load(fp string) {
	c.fingerprint, c.unsaved = fp, 0
	c.known = make(map[[sha256.Size]byte][]float32)
	r, ok := openSealed(c.vectorsPath(fp), vectorsMagic)
	if !ok || r.text() != fp {
		return
	}
	dims := r.int()
	for n := r.int(); n > 0 && r.ok(); n-- {
		var h [sha256.Size]byte
		copy(h[:], r.take(len(h)))
		if v := r.floats(dims); r.ok() {
			c.known[h] = v
		}
	}
}

func (c *vectorCache) save(fp string) {
	dims := 0
	for _, v := range c.known {
		dims = len(v)
		break
	}
	var w sealedWriter
	w.text(vectorsMagic)
	w.text(fp)
	w.int(dims)
	w.int(len(c.known))
	for _, h := range sortedHashes(c.known) {
		w.b.Write(h[:])
		w.floats(c.known[h])
	}
	if c.write(c.vectorsPath(fp), w.seal()) {
		c.unsaved = 0
	}
}

// loadModel gives the trained model of that fingerprint, or nil.
func (c *vectorCache) loadModel(fp string) *lsa {
	if c == nil {
		return nil
	}
	r, ok := openSealed(c.modelPath(fp), modelMagic)
	if !ok || r.text() != fp {
		return nil
	}
	m := &lsa{fingerprint: fp, terms: make(map[string]int32)}
	n := r.int()
	for i := 0; i < n && r.ok(); i++ {
		m.terms[r.text()] = int32(i)
	}
	m.rank, m.dims = r.int(), r.int()
	m.idf = r.floats(n)
	m.basis = r.floats(n * m.rank)
	m.rotation = r.floats(m.rank * m.dims)
	if !r.ok() || len(m.terms) != n || m.dims == 0 {
		return nil
	}
	return m
}

func (c *vectorCache) saveModel(m *lsa) {
	if c == nil {
		return
	}
	var w sealedWriter
	w.text(modelMagic)
	w.text(m.fingerprint)
	names := make([]string, len(m.terms))
	for t, i := range m.terms {
		names[i] = t
	}
	w.int(len(names))
	for _, t := range names {
		w.text(t)
	}
	w.int(m.rank)
	w.int(m.dims)
	w.floats(m.idf)
	w.floats(m.basis)
	w.floats(m.rotation)
	c.write(c.modelPath(m.fingerprint), w.seal())
}

// write replaces the file of that kind and removes its forerunners.
func (c *vectorCache) write(path string, data []byte) bool {
	if err := c.writeFile(path, data); err != nil {
		return false
	}
	kind, _, _ := strings.Cut(filepath.Base(path), "-")
	old, err := filepath.Glob(filepath.Join(c.dir, kind+"-*.bin"))
	if err != nil {
		return true
	}
	for _, p := range old {
		if p != path {
			// One that stays is only a waste of space.
			_ = os.Remove(p)
		}
	}
	return true
}

// clear forgets everything and removes the files.
func (c *vectorCache) clear() error {
	c.fingerprint, c.known, c.unsaved = "", nil, 0
	var errs []error
	for _, kind := range []string{"vectors", "model"} {
		old, err := filepath.Glob(filepath.Join(c.dir, kind+"-*.bin"))
		errs = append(errs, err)
		for _, p := range old {
			errs = append(errs, os.Remove(p))
		}
	}
	return errors.Join(errs...)
}

// sealedWriter builds a file that ends with the SHA-256 of the rest.
type sealedWriter struct{ b bytes.Buffer }

func (w *sealedWriter) int(n int) {
	w.b.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func (w *sealedWriter) text(s string) {
	w.int(len(s))
	w.b.WriteString(s)
}

func (w *sealedWriter) floats(v []float32) {
	w.int(len(v))
	for _, f := range v {
		w.b.Write(binary.LittleEndian.AppendUint32(w.b.AvailableBuffer(), math.Float32bits(f)))
	}
}

func (w *sealedWriter) seal() []byte {
	sum := sha256.Sum256(w.b.Bytes())
	w.b.Write(sum[:])
	return w.b.Bytes()
}

// sealedReader reads what sealedWriter wrote; after a bad length everything
// reads as zero and ok is false.
type sealedReader struct {
	b   []byte
	bad bool
}

// openSealed reads the file at path when it is whole and of that kind.
func openSealed(path, magic string) (*sealedReader, bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxCacheBytes))
	if err != nil || len(b) < sha256.Size {
		return nil, false
	}
	b, sum := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if got := sha256.Sum256(b); !bytes.Equal(got[:], sum) {
		return nil, false
	}
	r := &sealedReader{b: b}
	return r, r.text() == magic
}

func (r *sealedReader) ok() bool { return !r.bad }

func (r *sealedReader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *sealedReader) int() int {
	b := r.take(8)
	if b == nil {
		return 0
	}
	n := binary.LittleEndian.Uint64(b)
	if n > maxCacheBytes {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *sealedReader) text() string { return string(r.take(r.int())) }

// floats reads a list that must have n entries.
func (r *sealedReader) floats(n int) []float32 {
	if r.int() != n {
		r.bad = true
	}
	b := r.take(4 * n)
	if r.bad {
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

func sortedHashes(m map[[sha256.Size]byte][]float32) [][sha256.Size]byte {
	out := make([][sha256.Size]byte, 0, len(m))
	for h := range m {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	return out
}
