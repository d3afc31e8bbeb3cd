package retrieval

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// keptDocs makes n texts of few words, so that postings are long.
func keptDocs(r *rand.Rand, n int) []Document {
	vocabulary := strings.Fields("Pipe breaks while closingFile 管道 断开 timeouts retry_later go vet öffnen the the and cache")
	docs := make([]Document, n)
	for i := range docs {
		var text []string
		for range r.IntN(12) {
			text = append(text, vocabulary[r.IntN(len(vocabulary))])
		}
		docs[i] = NewDocument(fmt.Sprintf("d%03d", i), strings.Join(text, " "))
	}
	return docs
}

func filled(t *testing.T, dir string, docs []Document) *Index {
	t.Helper()
	o := &Options{}
	if dir != "" {
		o = &Options{Dir: dir, WriteFile: func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }}
	}
	x := New(o)
	if err := x.Fill(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return x
}

// invertedTerms returns what an inverted index holds of each term, by its key: how
// often each text has it. It fails where the number of texts is another.
func invertedTerms[K cmp.Ordered](t *testing.T, x *lexical.Index[K]) map[string]map[int32]int32 {
	t.Helper()
	out := make(map[string]map[int32]int32)
	enter := func(key string, df int, packed []byte) {
		if out[key] == nil {
			out[key] = make(map[int32]int32)
		}
		n := 0
		for c := lexical.ReadPostings(packed); c.Next(); n++ {
			if _, twice := out[key][c.Slot]; twice {
				t.Errorf("%q has slot %d twice", key, c.Slot)
			}
			out[key][c.Slot] = c.Tf
		}
		if n != df {
			t.Errorf("%q has %d texts and says %d", key, n, df)
		}
	}
	r := lexical.TableReader{All: x.Settled.Packed}
	for r.Next() {
		enter(string(r.Key), int(r.Df), r.List)
	}
	if r.Bad {
		t.Error("the table is bad")
	}
	for k := range x.Recent {
		list := x.RecentList(k)
		enter(string(x.Key(nil, k)), int(list.Df), list.Packed)
	}
	maps.DeleteFunc(out, func(_ string, texts map[int32]int32) bool { return len(texts) == 0 })
	return out
}

// lexicalContents says what an inverted index holds of each document, wherever it holds it.
func lexicalContents[K cmp.Ordered](t *testing.T, docs []Document, x *lexical.Index[K]) string {
	t.Helper()
	lengths := map[string]int32{}
	for slot, n := range x.Lengths {
		lengths[docs[slot].ID] = n
	}
	terms := map[string]map[string]int32{}
	for key, texts := range invertedTerms(t, x) {
		terms[key] = map[string]int32{}
		for slot, n := range texts {
			terms[key][docs[slot].ID] = n
		}
	}
	return fmt.Sprint(x.Docs, x.Total, lengths, terms)
}

func sameInverted(t *testing.T, what string, got, want *Index) {
	t.Helper()
	if lexicalContents(t, got.docs, got.words) != lexicalContents(t, want.docs, want.words) || lexicalContents(t, got.docs, got.grams) != lexicalContents(t, want.docs, want.grams) {
		t.Errorf("%s: the inverted indexes hold something else", what)
	}
}

// Taken from what is kept, whatever changed since, the inverted indexes hold
// what they hold when they are made from the texts.
func TestKeptLexicalIsThatOfTheTexts(t *testing.T) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		dir := t.TempDir()
		docs := keptDocs(r, 3*lexicalFew)
		sameInverted(t, "made", filled(t, dir, docs), filled(t, "", docs))
		sameInverted(t, "kept", filled(t, dir, docs), filled(t, "", docs))
		other := keptDocs(r, 4*lexicalFew)
		var now []Document
		for i, d := range other {
			switch k := r.IntN(10); {
			case i < len(docs) && k < int(seed)+2:
				now = append(now, docs[i])
			case k < 9:
				now = append(now, d)
			}
		}
		if seed%2 == 1 {
			r.Shuffle(len(now), func(i, j int) { now[i], now[j] = now[j], now[i] })
		}
		for range 2 { // the second time of what the first has kept
			got := filled(t, dir, now)
			sameInverted(t, fmt.Sprint("changed, seed ", seed), got, filled(t, "", now))
			got.Remove(now[0].ID)
			got.Put(NewDocument(now[0].ID, docs[0].Text()))
			want := filled(t, "", append([]Document{NewDocument(now[0].ID, docs[0].Text())}, now[1:]...))
			sameInverted(t, fmt.Sprint("put, seed ", seed), got, want)
		}
	}
}

// Only texts that changed are entered anew.
func TestKeptLexicalSparesTheRest(t *testing.T) {
	dir := t.TempDir()
	docs := keptDocs(rand.New(rand.NewPCG(5, 6)), 2*lexicalFew)
	filled(t, dir, docs)
	docs[1], docs[9] = NewDocument(docs[1].ID, docs[1].Text()+" pipe"), NewDocument(docs[9].ID, "another text")
	now := docs[:len(docs)-3]
	x := New(&Options{Dir: dir, WriteFile: func(string, []byte) error { return os.ErrPermission }})
	x.place(slices.Clone(now))
	missing, gone := x.fillLexical(x.cache)
	if len(missing) != 2 || x.docs[missing[0]].ID != docs[1].ID || x.docs[missing[1]].ID != docs[9].ID || gone != 5 {
		t.Errorf("slots %v are missing and %d documents gone, want those of documents 1 and 9, and 5", missing, gone)
	}
}

// A file that is damaged is none.
func TestKeptLexicalDamaged(t *testing.T) {
	docs := keptDocs(rand.New(rand.NewPCG(1, 2)), 2*lexicalFew)
	dir := t.TempDir()
	want := filled(t, dir, docs)
	path := filepath.Join(dir, lexicalFile)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 200 {
		damaged := append([]byte(nil), whole...)
		damaged[40+r.IntN(len(damaged)-80)] ^= byte(1 << r.IntN(8))
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got := filled(t, dir, docs)
		if !balanced(t, got.words) || !balanced(t, got.grams) {
			t.Errorf("damage %d: more or fewer occurrences than the texts are long", i)
		}
		sameInverted(t, "damaged", got, want)
	}
}

// balanced reports whether the postings are as many as the texts are long.
func balanced[K cmp.Ordered](t *testing.T, x *lexical.Index[K]) bool {
	t.Helper()
	var listed, long int64
	for _, texts := range invertedTerms(t, x) {
		for _, tf := range texts {
			listed += int64(tf)
		}
	}
	for _, n := range x.Lengths {
		long += int64(n)
	}
	return listed == x.Total && long == x.Total
}

// What words and grams make of a text is kept: raise the number in
// lexicalMagic, and in lexicalFile, with the sum.
func TestLexicalVersion(t *testing.T) {
	set, err := ReadSet("testdata/cards")
	if err != nil {
		t.Fatal(err)
	}
	h := sha256.New()
	for _, d := range set.Docs {
		lexical.Words(d.Text, func(w string) { io.WriteString(h, w+"\n") })
		lexical.Grams(d.Text, func(g uint64) { fmt.Fprintln(h, g) })
	}
	const want = "anamnesis lexical 4\n lexical-4.bin 6587ee95ef31659b"
	if got := fmt.Sprintf("%s %s %x", lexicalMagic, lexicalFile, h.Sum(nil)[:8]); got != want {
		t.Errorf("version and sum are %q, were %q", got, want)
	}
}

// lengths is an embedder whose vectors are of any length; it counts the texts
// it is given.
type lengths struct{ texts *int }

func (lengths) Fingerprint() string { return "lengths" }

func (e lengths) EmbedCards(_ context.Context, texts []string) ([][]float32, error) {
	*e.texts += len(texts)
	out := make([][]float32, len(texts))
	for i, t := range texts {
		out[i] = []float32{float32(len(t)), float32(strings.Count(t, "e")), 1}
	}
	return out, nil
}

func (e lengths) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	return []float32{1, float32(len(text)), 3}, nil
}

// The vectors that are kept and those that are searched, which may be the same
// ones, stay those of their texts, whatever is put, taken out and put again.
func TestKeptVectorsFollowChanges(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir, asked := t.TempDir(), 0
		open := func(docs []Document) *Index {
			x := New(&Options{Dir: dir, Embedder: lengths{&asked}, WriteFile: func(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }})
			if err := errors.Join(x.Fill(t.Context(), docs), x.Await(t.Context())); err != nil {
				rt.Fatal(err)
			}
			return x
		}
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		docs := keptDocs(r, 20)
		x := open(docs)
		for range rapid.IntRange(1, 6).Draw(rt, "changes") {
			at := r.IntN(len(docs))
			if x.Remove(docs[at].ID); r.IntN(2) == 0 {
				docs[at] = NewDocument(docs[at].ID, docs[r.IntN(len(docs))].Text())
			}
			if r.IntN(2) == 0 {
				if err := x.Await(t.Context()); err != nil {
					rt.Fatal(err)
				}
			}
			x.Put(docs[at])
			if err := x.Await(t.Context()); err != nil {
				rt.Fatal(err)
			}
		}
		before := asked
		again := open(docs)
		if asked != before {
			rt.Errorf("%d texts were embedded that had been", asked-before)
		}
		dir = t.TempDir()
		anew := open(docs)
		for _, query := range []string{"a", "pipe breaks", "timeouts and the cache"} {
			want, err := anew.vecs.Search(t.Context(), query, 20)
			if err != nil {
				rt.Fatal(err)
			}
			for _, y := range []*Index{x, again} {
				if got, err := y.vecs.Search(t.Context(), query, 20); err != nil || !slices.Equal(got, want) {
					rt.Fatalf("%q: %v, %v, want %v", query, got, err, want)
				}
			}
		}
	})
}
