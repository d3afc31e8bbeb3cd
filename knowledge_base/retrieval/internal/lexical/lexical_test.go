package lexical

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/knowledge_base/sealed"
)

// drawPostings draws postings with runs of neighbours that are alike.
func drawPostings(t *rapid.T) map[int32]int32 {
	out := make(map[int32]int32)
	for range rapid.IntRange(0, 6).Draw(t, "runs") {
		from, tf := rapid.Int32Range(0, 3000).Draw(t, "from"), rapid.SampledFrom([]int32{1, 1, 2, 127, 128, 70_000}).Draw(t, "tf")
		for slot := range rapid.Int32Range(1, 150).Draw(t, "long") {
			out[from+slot] = tf
		}
	}
	return out
}

func read(packed []byte) map[int32]int32 {
	out := make(map[int32]int32)
	last := int32(-1)
	for c := ReadPostings(packed); c.Next(); last = c.Slot {
		if c.Slot <= last {
			return nil
		}
		out[c.Slot] = c.Tf
	}
	return out
}

func pack(list map[int32]int32) (p postings) {
	for _, slot := range slices.Sorted(maps.Keys(list)) {
		p.enter(slot, list[slot])
	}
	return p
}

// TestPostings: packed postings hold what a map would, in ascending order,
// whatever slots are taken out and used again.
func TestPostings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawPostings(t)
		p := pack(want)
		for range rapid.IntRange(0, 20).Draw(t, "changes") {
			slot := rapid.Int32Range(0, 3200).Draw(t, "slot")
			_, there := want[slot]
			delete(want, slot)
			p, _ = without(p.Packed, slot)
			if !there || rapid.Bool().Draw(t, "again") {
				want[slot] = rapid.SampledFrom([]int32{1, 2, 300}).Draw(t, "tf")
				p.enter(slot, want[slot])
			}
			if got := read(p.Packed); !maps.Equal(got, want) || int(p.Df) != len(want) {
				t.Fatalf("%d of %v, want %v", p.Df, got, want)
			}
		}
	})
}

// TestTable: a table holds what maps do, however long its keys are and
// whatever is taken out.
func TestTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := make(map[string]map[int32]int32)
		key := rapid.StringMatching(`(a{14}|a{15}|a{30}|b|)(a|b|c){0,20}`)
		for range rapid.IntRange(0, 50).Draw(t, "terms") {
			if list := drawPostings(t); len(list) > 0 {
				want[key.Draw(t, "key")] = list
			}
		}
		var w tableWriter
		for _, k := range slices.Sorted(maps.Keys(want)) {
			w.add([]byte(k), int32(len(want[k])), pack(want[k]).Packed)
		}
		table := w.done()
		var r TableReader
		for range rapid.IntRange(0, 40).Draw(t, "changes") {
			k, slot := key.Draw(t, "other"), rapid.Int32Range(0, 3000).Draw(t, "slot")
			if len(want) > 0 && rapid.Bool().Draw(t, "known") {
				k = rapid.SampledFrom(slices.Sorted(maps.Keys(want))).Draw(t, "key")
			}
			if found := table.find([]byte(k), &r); found != (want[k] != nil) {
				t.Fatalf("find %q: %v", k, found)
			} else if !found {
				continue
			}
			_, has := want[k][slot]
			delete(want[k], slot)
			if there := r.remove(slot); there != has {
				t.Fatalf("remove %d of %q: %v, want %v", slot, k, there, has)
			}
		}
		all := TableReader{All: table.Packed}
		for _, k := range slices.Sorted(maps.Keys(want)) {
			if !all.Next() || string(all.Key) != k || !maps.Equal(read(all.List), want[k]) || int(all.Df) != len(want[k]) {
				t.Fatalf("%q: %d of %v, want %q: %v", all.Key, all.Df, read(all.List), k, want[k])
			}
		}
		if all.Next() || all.Bad {
			t.Fatalf("there is more: %q", all.Key)
		}
	})
}

// FuzzTable: bytes that are no table end its reading.
func FuzzTable(f *testing.F) {
	var w tableWriter
	w.add([]byte("pipe"), 3, pack(map[int32]int32{1: 1, 2: 1, 7: 300}).Packed)
	w.add([]byte("pipeline"), 150, pack(map[int32]int32{9: 1}).Packed)
	f.Add(w.Packed)
	f.Fuzz(func(t *testing.T, data []byte) {
		read := func(taken bool) {
			x := NewWords()
			var s sealed.Writer
			s.Uint(uint64(len(data)))
			s.Bytes(data)
			x.Take(sealed.NewReader(append(make([]byte, 3), s.Unsealed()...)), []int32{2, 0, -1}, 3)
			if taken {
				x.settleAll()
			}
		}
		read(false)
		read(true)
		r := TableReader{All: data}
		for n := 0; r.Next(); n++ {
			if n > len(data) {
				t.Fatal("more terms than bytes")
			}
		}
	})
}

// formula is BM25 by the book, over texts by slot.
func formula(b float64, texts map[int][]string, query []string, weight []float64) []float64 {
	long := 0
	for _, text := range texts {
		long += len(text)
	}
	out := make([]float64, bm25Slots)
	n := float64(len(texts))
	for i, term := range query {
		counts, df := make(map[int]float64), 0.0
		for slot, text := range texts {
			for _, w := range text {
				if w == term {
					counts[slot]++
				}
			}
			if counts[slot] > 0 {
				df++
			}
		}
		idf := math.Log(1 + (max(n, leastDocs)-df+0.5)/(df+0.5))
		for slot, tf := range counts {
			if tf > 0 {
				norm := bm25K1 * (1 - b + b*float64(len(texts[slot]))/(float64(long)/n))
				out[slot] += idf * weight[i] * tf * (bm25K1 + 1) / (tf + norm)
			}
		}
	}
	return out
}

const bm25Slots = 20

// TestBM25IsTheFormula: whatever texts come, go and take a slot again, and
// however often their terms occur, scores are those of the formula, to the bit.
func TestBM25IsTheFormula(t *testing.T) {
	word := rapid.SampledFrom(strings.Fields("a b c d e f g h i j k l"))
	each := func(text []string) func(func(string)) {
		return func(emit func(string)) {
			for _, w := range text {
				emit(w)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		x := NewWords()
		texts := make(map[int][]string)
		// Texts that are alike have their postings in one entry, which a removal breaks.
		same := rapid.SliceOfN(word, 0, 4).Draw(t, "same")
		for slot := range rapid.IntRange(0, bm25Slots).Draw(t, "alike") {
			texts[slot] = same
			x.Add(slot, each(same))
		}
		for range rapid.IntRange(1, 40).Draw(t, "changes") {
			slot := rapid.IntRange(0, bm25Slots-1).Draw(t, "slot")
			if text, there := texts[slot]; there {
				x.Remove(slot, each(text))
				delete(texts, slot)
			} else {
				texts[slot] = rapid.SliceOfN(word, 0, 8).Draw(t, "text")
				x.Add(slot, each(texts[slot]))
			}
			if rapid.IntRange(0, 3).Draw(t, "settle") == 0 {
				x.settleAll()
			}
			query := rapid.SliceOfNDistinct(word, 0, 5, func(w string) string { return w }).Draw(t, "query")
			weight := make([]float64, len(query))
			for i := range weight {
				weight[i] = float64(i + 1)
			}
			got := make([]float64, bm25Slots)
			x.Score(query, weight, got)
			if want := formula(wordsB, texts, query, weight); !slices.Equal(got, want) {
				t.Fatalf("%q in %v: %v, want %v", query, texts, got, want)
			}
		}
	})
}
