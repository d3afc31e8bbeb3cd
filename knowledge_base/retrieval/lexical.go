package retrieval

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
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
	terms   map[K]int32 // a term's number, or [alone]: most terms occur once in all
	lists   []postings  // by term number
	lengths []int32     // by slot
	docs    int
	total   int64 // sum of lengths
	buffer  []int32
	own     func(K) K // a copy of a term that holds on to no text
}

func newWords() *bm25[string] {
	return &bm25[string]{b: wordsB, terms: make(map[string]int32), own: strings.Clone}
}

func newGrams() *bm25[uint64] {
	return &bm25[uint64]{b: gramsB, terms: make(map[uint64]int32), own: func(g uint64) uint64 { return g }}
}

// alone stands in the place of the number of a term that occurs once, in the
// text under slot, and has no list. It is its own inverse.
func alone(slot int32) int32 { return -1 - slot }

// number begins the list of a term; one that was alone is in it.
func (x *bm25[K]) number(k K, was ...int32) int32 {
	t := int32(len(x.lists))
	var list postings
	for _, slot := range was {
		list.enter(slot, 1)
	}
	x.terms[x.own(k)], x.lists = t, append(x.lists, list) // an assignment takes the new key
	return t
}

// add enters the terms of a text under a slot that is free.
func (x *bm25[K]) add(slot int, each func(emit func(K))) {
	found := x.buffer[:0]
	length := int32(0)
	each(func(k K) {
		length++
		t, ok := x.terms[k]
		switch {
		case !ok:
			x.terms[x.own(k)] = alone(int32(slot))
			return
		case t == alone(int32(slot)): // the second time in this text
			t = x.number(k)
			found = append(found, t)
		case t < 0:
			t = x.number(k, alone(t))
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
		switch t, ok := x.terms[k]; {
		case !ok:
		case t == alone(int32(slot)):
			delete(x.terms, k)
		case t >= 0:
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

// list gives the postings of a term; none when it is unknown. room is for the
// one of a term that is alone.
func (x *bm25[K]) list(k K, room []byte) postings {
	switch t, ok := x.terms[k]; {
	case !ok:
		return postings{}
	case t < 0:
		list := postings{packed: room[:0]}
		list.enter(alone(t), 1)
		return list
	default:
		return x.lists[t]
	}
}

// score adds the query's terms, each with its weight, to scores (by slot).
// Terms are taken in the order given, so sums round the same way every time.
func (x *bm25[K]) score(terms []K, weight []float64, scores []float64) {
	if x.docs == 0 || x.total == 0 {
		return
	}
	avg := float64(x.total) / float64(x.docs)
	var room [binary.MaxVarintLen64]byte
	for i, k := range terms {
		ps := x.list(k, room[:])
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
