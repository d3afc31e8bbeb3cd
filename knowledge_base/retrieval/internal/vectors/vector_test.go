package vectors

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/philippgille/chromem-go"
	"gonum.org/v1/gonum/mat"
)

func vectorsOf(t *testing.T, dims int, vecs map[string][]float32) *collection {
	t.Helper()
	c, err := newCollection(dims)
	if err != nil {
		t.Fatal(err)
	}
	for id, v := range vecs {
		if _, err := c.put(t.Context(), id, v); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// Each guard stands against something chromem-go does by itself; where that
// can be shown, the test shows it first.
func TestVectorGuardKOverCount(t *testing.T) {
	c := vectorsOf(t, 2, map[string][]float32{"a": {1, 0}, "b": {1, 1}})
	if _, err := c.c.QueryEmbedding(t.Context(), []float32{1, 0}, 3, nil, nil); err == nil {
		t.Log("chromem-go now accepts more than it has")
	}
	got, err := c.nearest(t.Context(), []float32{1, 0}, 10)
	if err != nil || len(got) != 2 || got[0].Id != "a" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, k := range []int{0, -1} {
		if got, err := c.nearest(t.Context(), []float32{1, 0}, k); err != nil || got != nil {
			t.Errorf("k %d: %v, %v", k, got, err)
		}
	}
	empty := vectorsOf(t, 2, nil)
	if got, err := empty.nearest(t.Context(), []float32{1, 0}, 3); err != nil || got != nil {
		t.Errorf("empty: %v, %v", got, err)
	}
}

func TestVectorGuardRemoveNothing(t *testing.T) {
	c := vectorsOf(t, 2, map[string][]float32{"a": {1, 0}, "b": {0, 1}})
	if err := c.c.Delete(t.Context(), map[string]string{}, nil, "a"); err != nil || c.c.Count() != 0 {
		t.Logf("chromem-go no longer deletes all for an empty filter (%d left, %v)", c.c.Count(), err)
	}
	c = vectorsOf(t, 2, map[string][]float32{"a": {1, 0}, "b": {0, 1}})
	if err := c.remove(t.Context()); err != nil || c.c.Count() != 2 {
		t.Errorf("removing nothing left %d, %v", c.c.Count(), err)
	}
	if err := c.remove(t.Context(), "a", "unknown"); err != nil || c.c.Count() != 1 {
		t.Errorf("removing one left %d, %v", c.c.Count(), err)
	}
}

func TestVectorGuardBadVectors(t *testing.T) {
	c := vectorsOf(t, 2, map[string][]float32{"a": {1, 0}})
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, v := range [][]float32{nil, {}, {1}, {1, 2, 3}, {0, 0}, {nan, 1}, {inf, 1}, {3e38, 3e38}} {
		if _, err := c.put(t.Context(), "bad", v); !errors.Is(err, errBadVector) {
			t.Errorf("put %v: %v", v, err)
		}
	}
	if _, err := c.put(t.Context(), "", []float32{1, 0}); !errors.Is(err, errBadVector) {
		t.Errorf("put without id: %v", err)
	}
	if got, err := c.nearest(t.Context(), []float32{0, 0}, 1); err != nil || got != nil {
		t.Errorf("zero query: %v, %v", got, err)
	}
	if _, err := c.nearest(t.Context(), []float32{1}, 1); !errors.Is(err, errBadVector) {
		t.Errorf("short query: %v", err)
	}
	if got, err := c.nearest(t.Context(), []float32{1, 1}, 5); err != nil || len(got) != 1 {
		t.Errorf("after refused vectors: %v, %v", got, err)
	}
}

func TestVectorGuardAliasing(t *testing.T) {
	v := []float32{1, 0}
	c := vectorsOf(t, 2, map[string][]float32{"a": v})
	v[0], v[1] = 0, 1
	if got, err := c.nearest(t.Context(), []float32{1, 0}, 1); err != nil || len(got) != 1 || got[0].Cosine != 1 {
		t.Errorf("the caller's slice is the store's: %v, %v", got, err)
	}
}

// On disk chromem-go names files by a part of the id's hash, so that ids
// collide; in memory every id must stay its own.
func TestVectorGuardIDs(t *testing.T) {
	c := vectorsOf(t, 2, nil)
	const n = 70_000 // enough to make 32 bits of hash collide
	for i := range n {
		if _, err := c.put(t.Context(), fmt.Sprintf("id-%d", i), []float32{1, float32(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if c.c.Count() != n {
		t.Errorf("%d vectors, want %d", c.c.Count(), n)
	}
}

func TestVectorGuardTies(t *testing.T) {
	vecs := map[string][]float32{"best": {1, 0}}
	for i := range 200 {
		vecs[fmt.Sprintf("tie%03d", i)] = []float32{1, 1}
	}
	vecs["worst"] = []float32{1, 5}
	for range 5 {
		c := vectorsOf(t, 2, vecs)
		got, err := c.nearest(t.Context(), []float32{1, 0}, 4)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, n := range got {
			ids = append(ids, n.Id)
		}
		if want := []string{"best", "tie000", "tie001", "tie002"}; !reflect.DeepEqual(ids, want) {
			t.Fatalf("got %v, want %v", ids, want)
		}
	}
}

// One package file alone may know chromem-go; its persistence is not used.
func TestVectorMetadataUnused(t *testing.T) {
	c := vectorsOf(t, 1, map[string][]float32{"a": {1}})
	d, err := c.c.GetByID(t.Context(), "a")
	if err != nil || len(d.Metadata) != 0 || d.Content != "" {
		t.Errorf("%+v, %v", d, err)
	}
	var _ *chromem.Collection = c.c
}

// The singular values and the subspace of a matrix of known rank.
func TestTruncatedSVD(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const rows, cols, rank = 60, 40, 5
	left, right := make([]float64, rows*rank), make([]float64, rank*cols)
	for i := range left {
		left[i] = rng.NormFloat64()
	}
	for i := range right {
		right[i] = rng.NormFloat64()
	}
	a := &sparse{cols: cols}
	dense := make([][]float64, rows)
	for r := range rows {
		dense[r] = make([]float64, cols)
		var at []int32
		var val []float32
		for c := range cols {
			for k := range rank {
				dense[r][c] += left[r*rank+k] * right[k*cols+c]
			}
			at, val = append(at, int32(c)), append(val, float32(dense[r][c]))
		}
		a.addRow(at, val)
	}
	basis, l, rotation, dims, err := truncatedSVD(t.Context(), a, 12)
	if err != nil {
		t.Fatal(err)
	}
	if dims != rank {
		t.Fatalf("%d dimensions, want the rank %d", dims, rank)
	}
	project := func(x []float64) []float64 {
		out := make([]float64, dims)
		for j := range dims {
			for c, f := range x {
				for k := range l {
					out[j] += f * float64(basis[c*l+k]) * float64(rotation[k*dims+j])
				}
			}
		}
		return out
	}
	// On the row space the projection keeps inner products.
	for i := range 5 {
		for j := range 5 {
			var want, got float64
			for c := range cols {
				want += dense[i][c] * dense[j][c]
			}
			p, q := project(dense[i]), project(dense[j])
			for k := range dims {
				got += p[k] * q[k]
			}
			if math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
				t.Errorf("rows %d and %d: inner product %.4f, want %.4f", i, j, got, want)
			}
		}
	}
}

func TestSymmetricEigen(t *testing.T) {
	values, vectors, err := symmetricEigen(mat.NewSymDense(3, []float64{2, 1, 0, 1, 2, 0, 0, 0, 5}))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{5, 3, 1} {
		if math.Abs(values[i]-want) > 1e-9 {
			t.Errorf("eigenvalue %d is %g, want %g", i, values[i], want)
		}
	}
	if math.Abs(math.Abs(vectors.At(0, 1))-math.Sqrt(.5)) > 1e-9 || math.Abs(vectors.At(0, 1)-vectors.At(1, 1)) > 1e-9 {
		t.Errorf("eigenvector of 3: %v", mat.Formatted(vectors))
	}
}

func TestLSARelatesWordsThatShareCompany(t *testing.T) {
	// 100 subjects: each text has a subject's two sure words, one of its two
	// synonyms, and a stray word. The synonyms are never in one text.
	rng := rand.New(rand.NewPCG(3, 4))
	var docs []Document
	for i := range 400 {
		g := i % 100
		text := fmt.Sprintf("sure%d certain%d synonym%d%c sure%d", g, g, g, 'a'+rune(i/100%2), rng.IntN(100))
		docs = append(docs, textDocument(fmt.Sprint(i), text))
	}
	m, err := trainLSA(t.Context(), docs)
	if err != nil {
		t.Fatal(err)
	}
	again, err := trainLSA(t.Context(), docs)
	if err != nil || !reflect.DeepEqual(m, again) {
		t.Fatal("training twice gives two models")
	}
	word := m.embed("synonym7a")
	if near, far := dot(word, m.embed("synonym7b")), dot(word, m.embed("synonym8b")); near < far+0.5 {
		t.Errorf("synonyms %.3f, others %.3f", near, far)
	}
	if norm(m.embed("unheard of")) != 0 {
		t.Error("unknown words have a vector")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := trainLSA(ctx, docs); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled training: %v", err)
	}
}

func TestTrainingSizeDependsOnCountOnly(t *testing.T) {
	for n, want := range map[int]int{64: 64, 75: 64, 76: 76, 90: 76, 91: 91} {
		if got := trainingSize(n); got != want {
			t.Errorf("%d cards: %d, want %d", n, got, want)
		}
	}
	if got := trainingSize(10_000); got <= 8000 || got > 10_000 {
		t.Errorf("10000 cards: %d", got)
	}
}

func textDocument(id, text string) Document {
	return Document{ID: id, Hash: sha256.Sum256([]byte(text)), Text: func() string { return text }}
}
