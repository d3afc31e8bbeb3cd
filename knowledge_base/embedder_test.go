package knowledgebase

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
)

// fakeEmbedder is a remote embedder that can fail; it counts texts.
type fakeEmbedder struct {
	dims  int
	texts int
	err   error
}

func (f *fakeEmbedder) Fingerprint() string { return fmt.Sprintf("fake-%d", f.dims) }

func (f *fakeEmbedder) EmbedCards(_ context.Context, texts []string) ([][]float32, error) {
	f.texts += len(texts)
	var out [][]float32
	for _, t := range texts {
		v := make([]float32, f.dims)
		for _, b := range []byte(t) {
			v[int(b)%f.dims]++
		}
		out = append(out, v)
	}
	return out, f.err
}

func (f *fakeEmbedder) EmbedQuery(ctx context.Context, text string) ([]float32, error) {
	v, err := f.EmbedCards(ctx, []string{text})
	return v[0], err
}

func TestExternalEmbedderIsCachedAndMayFail(t *testing.T) {
	dir := t.TempDir()
	e := &fakeEmbedder{dims: 16}
	open := func() *Store {
		s, err := Open(dir, &Options{Embedder: e, Now: fixedNow})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	find := func(s *Store) {
		t.Helper()
		hits, err := s.Search(t.Context(), Query{Text: "broken pipe in the uploader"})
		if err != nil || len(hits) != 1 {
			t.Fatalf("%v, %v", ids(hits), err)
		}
	}
	s := open()
	mustPut(t, s, newCard("k1", "broken pipe", "the uploader sees a broken pipe"))
	mustPut(t, s, newCard("k2", "rate limit", "the crawler is throttled"))
	find(s)
	find(s)
	if e.texts != 2+2 {
		t.Errorf("%d texts embedded, want 2 cards and 2 queries", e.texts)
	}
	find(open())
	if e.texts != 2+3 {
		t.Errorf("%d texts embedded, want none but the query after reopening", e.texts)
	}
	e.err = errFault
	s = open()
	mustPut(t, s, newCard("k3", "other", "a new card to embed"))
	find(s)
	if !errors.Is(s.VectorError(), errFault) {
		t.Errorf("vector error %v", s.VectorError())
	}
	e.err = nil
	find(s)
	if s.VectorError() != nil {
		t.Errorf("vector error %v after recovery", s.VectorError())
	}
	if files, _ := filepath.Glob(filepath.Join(dir, indexDir, "vectors-*.bin")); len(files) != 1 {
		t.Errorf("cache files: %v", files)
	}
}
