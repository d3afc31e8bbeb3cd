package vectors

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/philippgille/chromem-go"
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

// TestMeasure: how alike cards are that have nothing to do with one another is measured on pairs of different cards
// that the embedder knows, and on enough of them.
func TestMeasure(t *testing.T) {
	for _, n := range []int{backgroundCards - 1, backgroundCards, 3 * backgroundCards} {
		vecs, docs := make(map[string][]float32), []Document{{ID: "unknown"}}
		for i := range n - 1 { // each has one side of its own and one that all have: a cosine of 0.5
			v := make([]float32, n+1)
			v[i], v[n] = 1, 1
			docs = append(docs, Document{ID: fmt.Sprint(i)})
			vecs[fmt.Sprint(i)] = v
		}
		l := &vectorSet{coll: vectorsOf(t, n+1, vecs)}
		l.measure(t.Context(), docs)
		want := 0.5
		if n < backgroundCards {
			want = 0
		}
		if math.Abs(l.mean-want) > 1e-6 || l.spread > 1e-3 {
			t.Errorf("%d cards: mean %f, spread %f", n, l.mean, l.spread)
		}
	}
	new(vectorSet).measure(t.Context(), make([]Document, backgroundCards)) // before anything was embedded
}

// TestVouches: a cosine vouches for a card by how far it is above those of unrelated cards.
func TestVouches(t *testing.T) {
	floor := 0.2 + 0.1*math.Sqrt(2*math.Log(20*100)) // of a hundred cards
	for _, tt := range []struct{ mean, spread, cosine, want float64 }{
		{0.2, 0, 0.9, 0},     // nothing was measured
		{0.2, 0.1, 0.1, 0},   // less alike than unrelated ones
		{0.2, 0.1, 0.2, 0},   // as alike
		{0.2, 0.1, floor, 1}, // as alike as the best of unrelated ones rarely is
		{0.2, 0.1, (floor + 0.2) / 2, 0.5},
		{0.2, 0.5, 0.99, 0}, // unrelated ones may be as alike as equal ones
	} {
		l := &Leg{vectorSet: vectorSet{mean: tt.mean, spread: tt.spread}}
		if got := l.Vouches(tt.cosine, 100); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%+v: %f", tt, got)
		}
	}
}
