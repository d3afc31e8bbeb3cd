// Package lexical finds texts by BM25: it cuts texts into words and character n-grams and
// keeps an inverted index of each, in memory and in a file. It knows no vectors.
package lexical

import (
	"bytes"
	"cmp"
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

// Index is an inverted index ranked by Okapi BM25 (Robertson and Walker, 1994)
// with the idf that is never negative, log(1 + (N-df+0.5)/(df+0.5)). Its
// scores depend on what it holds, not on the order in which that came.
//
// Most texts are in a [table], which cannot grow; those that came lately are in
// a map, until [Index.Settle] makes a new table of both.
type Index[K cmp.Ordered] struct {
	b       float64
	Settled table
	Recent  map[K]*postings
	changes int     // since the table was made
	Lengths []int32 // by slot
	Docs    int
	Total   int64                  // sum of lengths
	own     func(K) K              // a copy of a term that holds on to no text
	Key     func([]byte, K) []byte // appends what a term is in the table; their orders are the same
}

// A table is rebuilt after so many changes, and one for so many texts.
const (
	settleFew   = 32
	settleShare = 16
)

func NewWords() *Index[string] {
	return &Index[string]{b: wordsB, Recent: make(map[string]*postings), own: strings.Clone,
		Key: func(b []byte, w string) []byte { return append(b, w...) }}
}

func NewGrams() *Index[uint64] {
	return &Index[uint64]{b: gramsB, Recent: make(map[uint64]*postings), own: func(g uint64) uint64 { return g }, Key: binary.BigEndian.AppendUint64}
}

// Add enters the terms of a text under a slot that is free.
func (x *Index[K]) Add(slot int, each func(emit func(K))) {
	terms, counts := Distinct(each)
	length := int32(0)
	for i, k := range terms {
		list := x.Recent[k]
		if list == nil {
			list = new(postings)
			x.Recent[x.own(k)] = list
		}
		list.enter(int32(slot), int32(counts[i]))
		length += int32(counts[i])
	}
	for len(x.Lengths) <= slot {
		x.Lengths = append(x.Lengths, 0)
	}
	x.Lengths[slot] = length
	x.Docs++
	x.Total += int64(length)
	x.changes++
}

// Remove takes out the terms of a text that was added under slot.
func (x *Index[K]) Remove(slot int, each func(emit func(K))) {
	var r TableReader
	var key []byte
	terms, _ := Distinct(each)
	for _, k := range terms {
		key = x.Key(key[:0], k)
		if x.Settled.find(key, &r) && r.remove(int32(slot)) {
			continue
		}
		if list := x.Recent[k]; list != nil {
			*list, _ = without(list.Packed, int32(slot))
		}
	}
	x.Docs--
	x.Total -= int64(x.Lengths[slot])
	x.Lengths[slot] = 0
	x.changes++
}

// Settle makes a new table where enough has changed.
func (x *Index[K]) Settle() {
	if x.changes > max(settleFew, x.Docs/settleShare) {
		x.settleAll()
	}
}

// settleAll makes a table of everything.
func (x *Index[K]) settleAll() {
	recent := make([]K, 0, len(x.Recent))
	for k := range x.Recent {
		recent = append(recent, k)
	}
	slices.Sort(recent)
	var w tableWriter
	var key, packed []byte
	add := func(k K, settled []byte) {
		p := postings{Packed: packed[:0]}
		merge(&p, settled, x.RecentList(k).Packed)
		if packed = p.Packed; p.Df > 0 {
			w.add(key, p.Df, packed)
		}
	}
	r := TableReader{All: x.Settled.Packed}
	for more := r.Next(); more || len(recent) > 0; {
		order := -1
		if len(recent) > 0 {
			key = x.Key(key[:0], recent[0])
			if order = 1; more {
				order = bytes.Compare(r.Key, key)
			}
		}
		var settled []byte
		if order <= 0 {
			settled = r.List
		}
		switch {
		case order >= 0:
			add(recent[0], settled)
			recent = recent[1:]
		case r.List[0] != 0: // some text has it still
			w.add(r.Key, r.Df, trimmed(r.List))
		}
		if order <= 0 {
			more = r.Next()
		}
	}
	x.Settled = w.done()
	x.Recent, x.changes = make(map[K]*postings), 0
}

// trimmed returns postings without the zero bytes behind them.
func trimmed(packed []byte) []byte {
	if end := bytes.IndexByte(packed, 0); end >= 0 {
		return packed[:end]
	}
	return packed
}

// merge enters two lists of postings that have no text in common.
func merge(p *postings, a, b []byte) {
	c, d := ReadPostings(a), ReadPostings(b)
	inA, inB := c.Next(), d.Next()
	for inA || inB {
		if inA && (!inB || c.Slot < d.Slot) {
			p.enter(c.Slot, c.Tf)
			inA = c.Next()
		} else {
			p.enter(d.Slot, d.Tf)
			inB = d.Next()
		}
	}
}

// leastDocs is the least number of texts that the idf assumes. In a smaller store every word is
// rare, and a word that all its texts share still means something.
const leastDocs = 64

func (x *Index[K]) idf(df int) float64 {
	return math.Log(1 + (float64(max(x.Docs, leastDocs))-float64(df)+0.5)/(float64(df)+0.5))
}

// occurrences are a term's postings where they are: in the table and in the map.
type occurrences struct {
	df    int32 // texts
	parts [2][]byte
}

// list returns the postings of a term; none if it is unknown.
func (x *Index[K]) list(k K, s *lookup) occurrences {
	s.key = x.Key(s.key[:0], k)
	var out occurrences
	if x.Settled.find(s.key, &s.at) {
		out.df, out.parts[0] = s.at.Df, s.at.List
	}
	recent := x.RecentList(k)
	out.df += recent.Df
	out.parts[1] = recent.Packed
	return out
}

// lookup is the memory that [Index.list] reuses: a call invalidates the result of the one before.
type lookup struct {
	key []byte
	at  TableReader
}

// RecentList returns the postings of a term that are in the map.
func (x *Index[K]) RecentList(k K) postings {
	if list := x.Recent[k]; list != nil {
		return *list
	}
	return postings{}
}

// evidenceFlatness is by how many further documents without its terms a query's reach is
// computed: in a small store every word is rare.
const evidenceFlatness = 1000

// Score adds the query's terms, each with its weight, to scores (by slot).
// Terms are taken in the order given, so sums round the same way every time.
// reach is what a text of average length would get that has each of them once,
// in a store where every term is rare.
func (x *Index[K]) Score(terms []K, weight []float64, scores []float64) (reach float64) {
	if x.Docs == 0 || x.Total == 0 {
		return 0
	}
	avg := float64(x.Total) / float64(x.Docs)
	var s lookup
	for i, k := range terms {
		found := x.list(k, &s)
		w := x.idf(int(found.df)) * weight[i]
		reach += weight[i] * math.Log(float64(max(x.Docs, leastDocs)+evidenceFlatness)/float64(found.df+1))
		for _, packed := range found.parts {
			x.scorePart(packed, w, avg, scores)
		}
	}
	return reach
}

// scorePart is a loop over a cursor without its calls, which took a large part of a query's time.
func (x *Index[K]) scorePart(packed []byte, w, avg float64, scores []float64) {
	slot, lengths, b := int32(-1), x.Lengths, x.b
	for at := 0; at < len(packed) && packed[at] != 0; {
		v, tf := uint64(packed[at]), 1.0
		if at++; v >= 0x80 {
			v, at = varint(packed, at-1)
		}
		if v&1 == 1 {
			var n uint64
			n, at = varint(packed, at)
			tf = float64(n)
		}
		slot += int32(v >> 1)
		norm := bm25K1 * (1 - b + b*float64(lengths[slot])/avg)
		scores[slot] += w * tf * (bm25K1 + 1) / (tf + norm)
	}
}

// varint reads a number at a place.
func varint(packed []byte, at int) (v uint64, after int) {
	v, n := binary.Uvarint(packed[at:])
	return v, at + n
}

// Distinct collects the distinct terms of a query in order of appearance,
// with the number of times each occurs.
func Distinct[K comparable](each func(emit func(K))) (terms []K, counts []float64) {
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
