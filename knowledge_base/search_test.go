package knowledgebase

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/knowledge_base/retrieval"
)

var day = time.Date(2026, 1, 31, 10, 0, 0, 0, time.UTC)

func fixedNow() time.Time { return day }

func openStore(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, &Options{Now: fixedNow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newCard(id, topic string, issue ...string) *card.Card {
	return &card.Card{ID: id, Topic: topic, SourceTask: "task_1", State: card.Draft, Created: day, Issue: issue}
}

func mustPut(t testing.TB, s *Store, c *card.Card) string {
	t.Helper()
	ch := Change{Cards: []*card.Card{c}}
	if c.State == card.Reviewed {
		ch.By = Person
	}
	out, err := s.Apply(t.Context(), ch)
	if err != nil {
		t.Fatal(err)
	}
	return out[0].Path
}

// evalSet is one of the search's labelled sets.
type evalSet struct {
	Docs, Queries []evalRecord
	Right         map[string]map[string]bool // query → the documents that answer it
}

type evalRecord struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
}

func readSet(t testing.TB, dir string) (set evalSet) {
	t.Helper()
	read := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for name, list := range map[string]*[]evalRecord{"corpus.jsonl": &set.Docs, "queries.jsonl": &set.Queries} {
		for line := range bytes.Lines(read(name)) {
			var r evalRecord
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			*list = append(*list, r)
		}
	}
	set.Right = make(map[string]map[string]bool)
	for line := range strings.Lines(string(read("qrels.tsv"))) {
		if f := strings.Fields(line); f[2] != "0" {
			if set.Right[f[0]] == nil {
				set.Right[f[0]] = make(map[string]bool)
			}
			set.Right[f[0]][f[1]] = true
		}
	}
	return set
}

// smallStore holds the committed bilingual set as cards.
func smallStore(t testing.TB, dir string) (*Store, evalSet) {
	t.Helper()
	set := readSet(t, "retrieval/testdata/small")
	s := openStore(t, dir)
	for _, d := range set.Docs {
		mustPut(t, s, newCard(d.ID, d.Title, d.Text))
	}
	return s, set
}

func ids(hits []recalled.Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Card.ID)
	}
	return out
}

func TestSearchFindsCardsInBothLanguages(t *testing.T) {
	s, set := smallStore(t, t.TempDir())
	first := 0
	for _, q := range set.Queries {
		hits, err := s.Search(t.Context(), Query{Text: q.Text, K: 3})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for i, h := range hits {
			if set.Right[q.ID][h.Card.ID] {
				found = true
				if i == 0 {
					first++
				}
			}
		}
		if !found {
			t.Errorf("%q: found %v, want %v", q.Text, ids(hits), set.Right[q.ID])
		}
	}
	if first < len(set.Queries)-2 {
		t.Errorf("only %d of %d queries have their card first", first, len(set.Queries))
	}
}

func TestSearchAbstains(t *testing.T) {
	s, _ := smallStore(t, t.TempDir())
	b, err := os.ReadFile("retrieval/testdata/small/unrelated.txt")
	if err != nil {
		t.Fatal(err)
	}
	answered := func(queries []string) (out []string) {
		for _, q := range queries {
			hits, err := s.Search(t.Context(), Query{Text: q})
			if err != nil {
				t.Fatal(err)
			}
			if len(hits) > 0 {
				out = append(out, fmt.Sprintf("%q: %v (%+v)", q, ids(hits), hits[0].Evidence))
			}
		}
		return out
	}
	if out := answered([]string{"", "   ", "的", "the of and", "请问怎么可以"}); len(out) > 0 {
		t.Errorf("answers to nothing: %v", out)
	}
	unrelated := strings.Split(strings.TrimSpace(string(b)), "\n")
	if out := answered(unrelated); len(out) > 0 {
		t.Errorf("%d answers to %d unrelated questions: %v", len(out), len(unrelated), out)
	}
	hits, err := s.Search(t.Context(), Query{Text: "tune a violin string", MinEvidence: -1})
	if err != nil || len(hits) == 0 {
		t.Errorf("without a bar: %v, %v; want whatever matches", ids(hits), err)
	}
}

func TestSearchFilters(t *testing.T) {
	const text = "connection reset by peer while uploading the artifact bundle"
	s := openStore(t, t.TempDir())
	var own []string
	add := func(id string, state card.State, task string, tainted bool) {
		c := newCard(id, text, text, "seen by "+id)
		c.State, c.SourceTask, c.Provenance = state, task, card.Provenance{Task: task, Tainted: tainted}
		mustPut(t, s, c)
		own = append(own, c.Hash())
	}
	add("a-draft", card.Draft, "t1", false)
	add("b-tainted", card.Draft, "t1", true)
	add("c-reviewed-tainted", card.Reviewed, "t1", true)
	add("d-retired", card.Retired, "t1", false)
	add("e-superseded", card.Superseded, "t1", false)
	for _, tt := range []struct {
		name string
		q    Query
		want []string
	}{
		{"another task", Query{Own: []string{"another"}}, []string{"c-reviewed-tainted", "a-draft"}},
		{"nobody", Query{}, []string{"c-reviewed-tainted", "a-draft"}},
		{"its own task", Query{Own: own}, []string{"c-reviewed-tainted", "a-draft", "b-tainted"}},
		{"one", Query{Own: own, K: 1}, []string{"c-reviewed-tainted", "a-draft", "b-tainted"}},
	} {
		tt.q.Text = "upload fails: connection reset by peer"
		hits, err := s.Search(t.Context(), tt.q)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, h := range hits { // they say nearly the same and share a place
			got = append(append(got, h.Card.ID), h.Also...)
		}
		if !reflect.DeepEqual(got, tt.want) || len(hits) != 1 {
			t.Errorf("%s: got %v in %d places, want %v in one", tt.name, got, len(hits), tt.want)
		}
	}
}

// A tainted card without a task belongs to nobody, so an asker without a
// task must not be taken for its owner.
func TestTaintedCardOfNobodyStaysHidden(t *testing.T) {
	s := openStore(t, t.TempDir())
	c := newCard("x1", "disk quota exceeded on the build host")
	c.SourceTask, c.Issue, c.Provenance.Tainted = "", []string{"disk quota exceeded"}, true
	mustPut(t, s, c)
	hits, err := s.Search(t.Context(), Query{Text: "disk quota exceeded"})
	if err != nil || len(hits) != 0 {
		t.Fatalf("got %v, %v; want nothing", ids(hits), err)
	}
}

func TestSearchRefusesBadK(t *testing.T) {
	s := openStore(t, t.TempDir())
	for _, k := range []int{-1, retrieval.MaxK + 1} {
		if _, err := s.Search(t.Context(), Query{Text: "x", K: k}); err == nil {
			t.Errorf("k %d: no error", k)
		}
	}
}

// allAnswers gives the answers to all queries as bytes.
func allAnswers(t testing.TB, s *Store, set evalSet) string {
	t.Helper()
	var b strings.Builder
	for _, q := range set.Queries {
		hits, err := s.Search(t.Context(), Query{Text: q.Text, K: 10, MinEvidence: -1})
		if err != nil {
			t.Fatal(err)
		}
		for i := range hits {
			hits[i].Path = filepath.Base(hits[i].Path)
		}
		if err := json.NewEncoder(&b).Encode(hits); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.VectorError(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// manyCards puts cards, searching on the way.
func manyCards(t testing.TB, s *Store, n int) {
	t.Helper()
	subjects := strings.Fields("parser scheduler cache socket migration renderer login billing export index")
	faults := strings.Fields("deadlock overflow timeout panic leak corruption rejection duplicate truncation drift")
	for i := range n {
		a, b := subjects[i%10], faults[i/10%10]
		c := newCard(fmt.Sprintf("m%03d", i), fmt.Sprintf("%s %s number %d", a, b, i),
			fmt.Sprintf("the %s shows a %s after the %s of release %d", a, b, subjects[(i*7+3)%10], i%13))
		c.Created = day.Add(time.Duration(i) * time.Second)
		mustPut(t, s, c)
	}
}

// The index is a function of the cards: however they came to be there, and
// whether vectors come from the cache or not, answers are the same bytes.
func TestRebuildGivesSameAnswers(t *testing.T) {
	for _, more := range []int{0, 110} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			if more > 0 && !ci() {
				t.Skip("NOT RUN: heavy; .ci/run runs it, or ANAMNESIS_CI=1")
			}
			dir := t.TempDir()
			s, set := smallStore(t, dir)
			allAnswers(t, s, set) // builds the index, so that later cards are folded in
			manyCards(t, s, more)
			gone, err := s.Get("nil-map")
			if err != nil {
				t.Fatal(err)
			}
			gone.State = card.Retired
			mustPut(t, s, gone)
			before := allAnswers(t, s, set)
			check := func(what string, s *Store) {
				t.Helper()
				if got := allAnswers(t, s, set); got != before {
					t.Errorf("%s: the answers differ", what)
				}
			}
			check("opened anew with cache", openStore(t, dir))
			if err := s.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}
			check("rebuilt", s)
			if err := os.RemoveAll(filepath.Join(dir, indexDir)); err != nil {
				t.Fatal(err)
			}
			check("index deleted", openStore(t, dir))
			for _, name := range []string{"cards.bin", "lexical-4.bin", "committed"} { // of earlier versions
				if err := os.WriteFile(filepath.Join(dir, indexDir, name), []byte("old"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			check("caches of earlier versions", openStore(t, dir))
		})
	}
}

func TestConcurrentUse(t *testing.T) {
	s, set := smallStore(t, t.TempDir())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 12 {
				c := newCard(fmt.Sprintf("w%d-%d", w, i), fmt.Sprintf("worker %d broke pipe %d", w, i), "broken pipe")
				if _, created, err := s.Put(t.Context(), c); err != nil || !created {
					t.Errorf("put: created %v, %v", created, err)
				}
				q := set.Queries[(w*12+i)%len(set.Queries)]
				if _, err := s.Search(t.Context(), Query{Text: q.Text}); err != nil {
					t.Error(err)
				}
				s.List()
				if i == 6 && w == 0 {
					if err := s.Rebuild(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := len(s.List()); n != len(set.Docs)+48 {
		t.Errorf("%d cards, want %d", n, len(set.Docs)+48)
	}
}

func TestEmptyStoreAndClosedStore(t *testing.T) {
	s := openStore(t, t.TempDir())
	if hits, err := s.Search(t.Context(), Query{Text: "anything"}); err != nil || len(hits) != 0 {
		t.Errorf("empty store: %v, %v", hits, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Search(t.Context(), Query{Text: "anything"}); err != ErrClosed {
		t.Errorf("closed store: %v", err)
	}
	if _, _, err := s.Put(t.Context(), newCard("a", "b", "c")); err != ErrClosed {
		t.Errorf("put to closed store: %v", err)
	}
}

func TestSearchByID(t *testing.T) {
	s, _ := smallStore(t, t.TempDir())
	hits, err := s.Search(t.Context(), Query{Text: " nil-map\n"})
	if err != nil || len(hits) != 1 || hits[0].Card.ID != "nil-map" || hits[0].Path == "" {
		t.Errorf("got %+v, %v", hits, err)
	}
	c := newCard("secret1", "x", "y")
	c.Provenance.Tainted = true
	mustPut(t, s, c)
	if hits, err := s.Search(t.Context(), Query{Text: "secret1"}); err != nil || len(hits) != 0 {
		t.Errorf("a tainted card is shown for its id: %v, %v", ids(hits), err)
	}
}

// Whichever of two cards says that it contradicts the other, a search shows both,
// each naming the other, and so do a listing and what a model reads.
func TestContradictionBothWays(t *testing.T) {
	for _, asked := range []string{"sqlite busy timeout writer", "journal mode of the network share"} {
		s := openStore(t, t.TempDir())
		mustPut(t, s,
			newCard("k1", "sqlite busy timeout", "two writers lock sqlite: set a busy timeout for each writer"))
		against := newCard("k2", "journal mode of the network share", "the journal mode on the network share is delete")
		against.Contradicts = []string{"k1"}
		mustPut(t, s, against)
		hits, err := s.Search(t.Context(), Query{Text: asked, K: 1})
		if err != nil || len(hits) != 2 {
			t.Fatalf("%q: %+v, %v", asked, hits, err)
		}
		for i, h := range hits {
			if other := hits[1-i].Card.ID; !reflect.DeepEqual(h.Contradicts, []string{other}) {
				t.Errorf("%q: %s names %v, want %s", asked, h.Card.ID, h.Contradicts, other)
			}
		}
		if text, _ := recalled.Pack(hits, 1000, func(string) int { return 0 }); strings.Count(text, " · contradicts k") != 2 {
			t.Errorf("%q: the model reads\n%s", asked, text)
		}
		for _, e := range s.List() {
			if len(e.Contradicts) != 1 {
				t.Errorf("%s is listed as contradicting %v", e.ID, e.Contradicts)
			}
		}
		// A card that takes it back opposes nothing any more.
		back, err := s.Get("k2")
		if err != nil {
			t.Fatal(err)
		}
		back.Contradicts = nil
		mustPut(t, s, back)
		if hits, err := s.Search(t.Context(), Query{Text: asked, K: 1}); err != nil || len(hits) != 1 ||
			hits[0].Contradicts != nil {
			t.Errorf("%q, taken back: %+v, %v", asked, hits, err)
		}
	}
}

// What is kept from a query for want of a review is found by asking for it.
func TestWithheld(t *testing.T) {
	s := openStore(t, t.TempDir())
	outside := newCard("k1", "sqlite busy timeout", "two writers lock sqlite: set a busy timeout for each writer")
	outside.Provenance.Tainted = true
	mustPut(t, s, outside)
	plain := newCard("k2", "sqlite vacuum", "vacuum of sqlite needs twice the disk")
	mustPut(t, s, plain)
	for _, tt := range []struct {
		q    Query
		want string
	}{
		{Query{}, ""}, {Query{Withheld: true}, "k1"}, {Query{Withheld: true, Own: []string{outside.Hash()}}, ""}, {Query{Own: []string{outside.Hash()}}, "k1"},
	} {
		tt.q.Text = "busy timeout two writers"
		hits, err := s.Search(t.Context(), tt.q)
		got := ""
		for _, h := range hits {
			got += h.Card.ID
		}
		if err != nil || got != tt.want {
			t.Errorf("%+v: %q, %v", tt.q, got, err)
		}
	}
}
