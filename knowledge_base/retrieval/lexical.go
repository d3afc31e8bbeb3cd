package retrieval

import (
	"encoding/binary"
	"math"
	"slices"
)

// BM25's parameters. b is low because cards are short by design: a longer
// one says more rather than the same at length.
const (
	bm25K1 = 1.2
	wordsB = 0.5
	gramsB = 0.75
)

// postings say in which texts a term occurs, and how often: for each text the
// way from the slot before it to its own, which is short where a term is
// frequent, and the count only where it is not 1. Mostly that is one byte or two.
type postings struct {
	packed []byte
	df     int32 // texts
	last   int32 // the slot entered last
}

// enter adds a text that is not there.
func (p *postings) enter(slot int32, tf int) {
	way := int64(slot) - int64(p.last)
	v := uint64(way<<1^way>>63) << 1 // as a varint of encoding/binary with a sign, then whether a count follows
	if tf > 1 {
		p.packed = binary.AppendUvarint(p.packed, v|1)
		p.packed = binary.AppendUvarint(p.packed, uint64(tf))
	} else {
		p.packed = binary.AppendUvarint(p.packed, v)
	}
	p.df++
	p.last = slot
}

// way is from the slot before to the next one, as enter has packed it.
func way(v uint64) int32 { return int32(v>>2) ^ -int32(v>>1&1) }

// varint reads a number at a place.
func (p *postings) varint(at int) (v uint64, after int) {
	v, n := binary.Uvarint(p.packed[at:])
	return v, at + n
}

// each calls f for every text and the term's count in it, in the order in
// which they were added.
func (p *postings) each(f func(slot int32, tf int)) {
	for at, slot := 0, int32(0); at < len(p.packed); {
		v, tf := uint64(0), uint64(1)
		if v, at = p.varint(at); v&1 == 1 {
			tf, at = p.varint(at)
		}
		slot += way(v)
		f(slot, int(tf))
	}
}

// remove takes a text out, if it is there.
func (p *postings) remove(slot int32) {
	var rest postings
	p.each(func(s int32, tf int) {
		if s != slot {
			rest.enter(s, tf)
		}
	})
	*p = rest
}

// bm25 is an inverted index ranked by Okapi BM25 (Robertson and Walker, 1994)
// with the idf that is never negative, log(1 + (N-df+0.5)/(df+0.5)). Its
// scores depend on what it holds, not on the order in which that came.
type bm25[K comparable] struct {
	b       float64
	terms   map[K]int32
	lists   []postings // by term number
	lengths []int32    // by slot
	docs    int
	total   int64 // sum of lengths
	buffer  []int32
}

func newBM25[K comparable](b float64) *bm25[K] {
	return &bm25[K]{b: b, terms: make(map[K]int32)}
}

// add enters the terms of a text under a slot that is free.
func (x *bm25[K]) add(slot int, each func(emit func(K))) {
	found := x.buffer[:0]
	each(func(k K) {
		t, ok := x.terms[k]
		if !ok {
			t = int32(len(x.lists))
			x.terms[k] = t
			x.lists = append(x.lists, postings{})
		}
		found = append(found, t)
	})
	slices.Sort(found)
	for i := 0; i < len(found); {
		t, from := found[i], i
		for i++; i < len(found) && found[i] == t; i++ {
		}
		x.lists[t].enter(int32(slot), i-from)
	}
	x.buffer = found
	length := int32(len(found))
	for len(x.lengths) <= slot {
		x.lengths = append(x.lengths, 0)
	}
	x.lengths[slot] = length
	x.docs++
	x.total += int64(length)
}

// remove takes out the terms of a text that was added under slot.
func (x *bm25[K]) remove(slot int, each func(emit func(K))) {
	found := x.buffer[:0]
	each(func(k K) {
		if t, ok := x.terms[k]; ok {
			found = append(found, t)
		}
	})
	x.buffer = found
	slices.Sort(found)
	for _, t := range slices.Compact(found) {
		x.lists[t].remove(int32(slot))
	}
	x.docs--
	x.total -= int64(x.lengths[slot])
	x.lengths[slot] = 0
}

func (x *bm25[K]) idf(df int) float64 {
	return math.Log(1 + (float64(x.docs)-float64(df)+0.5)/(float64(df)+0.5))
}

// list gives the postings of a term; none when it is unknown.
func (x *bm25[K]) list(k K) postings {
	if t, ok := x.terms[k]; ok {
		return x.lists[t]
	}
	return postings{}
}

// score adds the query's terms, each with its weight, to scores (by slot).
// Terms are taken in the order given, so sums round the same way every time.
func (x *bm25[K]) score(terms []K, weight []float64, scores []float64) {
	if x.docs == 0 || x.total == 0 {
		return
	}
	avg := float64(x.total) / float64(x.docs)
	for i, k := range terms {
		ps := x.list(k)
		w := x.idf(int(ps.df)) * weight[i]
		packed, slot := ps.packed, int32(0)
		for at := 0; at < len(packed); { // as postings.each, without a call for each
			v, tf := uint64(packed[at]), 1.0
			if at++; v >= 0x80 {
				v, at = ps.varint(at - 1)
			}
			if v&1 == 1 {
				var n uint64
				n, at = ps.varint(at)
				tf = float64(n)
			}
			slot += way(v)
			norm := bm25K1 * (1 - x.b + x.b*float64(x.lengths[slot])/avg)
			scores[slot] += w * tf * (bm25K1 + 1) / (tf + norm)
		}
	}
}

// distinct collects the distinct terms of a query in order of appearance,
// with the number of times each occurs.
func distinct[K comparable](each func(emit func(K))) (terms []K, counts []float64) {
	at := make(map[K]int)
	each(func(k K) {
		i, ok := at[k]
		if !ok {
			i = len(terms)
			at[k] = i
			terms = append(terms, k)
			counts = append(counts, 0)
		}
		counts[i]++
	})
	return terms, counts
}
