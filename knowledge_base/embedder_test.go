package knowledgebase

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"anamnesis/knowledge_base/retrieval"
)

// fakeEmbedder is a remote embedder that can fail or keep one waiting; it
// counts texts.
type fakeEmbedder struct {
	name string
	dims int
	gate chan struct{} // not nil: cards are embedded once it is closed

	mu    sync.Mutex
	texts int
	err   error
}

func (f *fakeEmbedder) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeEmbedder) asked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.texts
}

func (f *fakeEmbedder) Fingerprint() string { return fmt.Sprintf("fake%s-%d", f.name, f.dims) }

func (f *fakeEmbedder) EmbedCards(ctx context.Context, texts []string) ([][]float32, error) {
	if f.gate != nil {
		select {
		case <-f.gate:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return f.embed(texts)
}

func (f *fakeEmbedder) embed(texts []string) ([][]float32, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
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

func (f *fakeEmbedder) EmbedQuery(_ context.Context, text string) ([]float32, error) {
	v, err := f.embed([]string{text})
	return v[0], err
}

func TestExternalEmbedderIsCached(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[odd]*")          // no pattern
	old := filepath.Join(dir, indexDir, "vectors-0.bin") // another embedder's
	if err := errors.Join(os.MkdirAll(filepath.Dir(old), 0o700), os.WriteFile(old, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	e := &fakeEmbedder{dims: 16}
	open := func() *Store {
		s, err := Open(dir, &Options{Embedder: e, Now: fixedNow, VectorWait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	s := open()
	mustPut(t, s, newCard("k1", "broken pipe", "the uploader sees a broken pipe"))
	mustPut(t, s, newCard("k2", "rate limit", "the crawler is throttled"))
	findUploader(t, s)
	findUploader(t, s)
	if e.asked() != 2+2 {
		t.Errorf("%d texts embedded, want 2 cards and 2 queries", e.asked())
	}
	findUploader(t, open())
	if e.asked() != 2+3 {
		t.Errorf("%d texts embedded, want none but the query after reopening", e.asked())
	}
	if files, _ := fs.Glob(os.DirFS(filepath.Join(dir, indexDir)), "vectors-*.bin"); len(files) != 2 {
		t.Errorf("cache files, those of two models are kept: %v", files)
	}
}

// findUploader searches for the only card that fits.
func findUploader(t *testing.T, s *Store) {
	t.Helper()
	hits, err := s.Search(t.Context(), Query{Text: "broken pipe in the uploader"})
	if err != nil || len(hits) != 1 {
		t.Fatalf("%v, %v", ids(hits), err)
	}
}

func TestExternalEmbedderMayFail(t *testing.T) {
	e, now := &fakeEmbedder{dims: 16}, day
	e.fail(errFault)
	s, err := Open(t.TempDir(), &Options{Embedder: e, Now: func() time.Time { return now }, VectorWait: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	mustPut(t, s, newCard("k1", "broken pipe", "the uploader sees a broken pipe"))
	mustPut(t, s, newCard("k3", "other", "a new card to embed"))
	findUploader(t, s)
	if !errors.Is(s.VectorError(), errFault) {
		t.Errorf("vector error %v", s.VectorError())
	}
	asked := e.asked()
	findUploader(t, s)
	if e.asked() != asked || !errors.Is(s.VectorError(), errFault) {
		t.Errorf("an embedder that failed just now was asked again (%v)", s.VectorError())
	}
	e.fail(nil)
	now = now.Add(time.Hour)
	findUploader(t, s)
	if s.VectorError() != nil {
		t.Errorf("vector error %v after recovery", s.VectorError())
	}
	now = now.Add(time.Hour)
	e.fail(errFault)
	findUploader(t, s)
	if !errors.Is(s.VectorError(), errFault) {
		t.Errorf("vector error %v of a query", s.VectorError())
	}
	e.fail(nil)
	now = now.Add(time.Hour)
	findUploader(t, s)
	if s.VectorError() != nil {
		t.Errorf("vector error %v after a query's recovery", s.VectorError())
	}
}

// Another embedder's vectors are built beside: until they are there, searches
// answer by words, and an endpoint too slow for any is left in peace for a while.
func TestChangedEmbedderBuildsBeside(t *testing.T) {
	dir, wait := t.TempDir(), time.Millisecond
	open := func(e *fakeEmbedder) *Store {
		s, err := Open(dir, &Options{Embedder: e, Now: fixedNow, VectorWait: wait})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	search := func(s *Store) {
		t.Helper()
		if hits, err := s.Search(t.Context(), Query{Text: "broken pipe in the uploader"}); err != nil ||
			len(hits) != 1 {
			t.Fatalf("%v, %v", ids(hits), err)
		}
	}
	s := open(&fakeEmbedder{dims: 16})
	mustPut(t, s, newCard("k1", "broken pipe", "the uploader sees a broken pipe"))
	if err := s.Rebuild(t.Context()); err != nil || s.VectorError() != nil {
		t.Fatal(err, s.VectorError())
	}
	before := vectorFiles(t, dir)
	s.Close()

	slow := &fakeEmbedder{name: "slow", dims: 8, gate: make(chan struct{})}
	s = open(slow)
	search(s)
	if s.VectorError() == nil || vectorFiles(t, dir) != before {
		t.Errorf("while building: %v, files %s, want %s", s.VectorError(), vectorFiles(t, dir), before)
	}
	close(slow.gate)
	mustPut(t, s, newCard("k2", "rate limit", "the crawler is throttled"))
	if search(s); s.VectorError() == nil || slow.asked() != 0 {
		t.Errorf("asked again at once: %v, %d texts", s.VectorError(), slow.asked())
	}
	s.Close()
	wait = time.Minute
	s = open(slow)
	if search(s); s.VectorError() != nil {
		t.Error(s.VectorError())
	}
	if got := vectorFiles(t, dir); got == before || strings.Count(got, ".bin") != 2 {
		t.Errorf("files %s, before %s", got, before)
	}
}

func vectorFiles(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, indexDir, "vectors-*.bin"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(files, " ")
}

// Who switches to another model and back sends no card again.
func TestSwitchingBackSendsNothingAgain(t *testing.T) {
	dir := t.TempDir()
	models := map[string]*fakeEmbedder{}
	use := func(name string) int {
		if models[name] == nil {
			models[name] = &fakeEmbedder{name: name, dims: 8}
		}
		e := models[name]
		before := e.asked()
		s, err := Open(dir, &Options{Embedder: e, Now: fixedNow, VectorWait: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if len(s.List()) == 0 {
			for i := range 70 {
				mustPut(t, s,
					newCard(fmt.Sprintf("k%d", i), "broken pipe", fmt.Sprintf("the uploader %d sees a broken pipe", i)))
			}
		}
		if _, err := s.Search(t.Context(), Query{Text: "broken pipe"}); err != nil || s.VectorError() != nil {
			t.Fatal(err, s.VectorError())
		}
		return e.asked() - before - 1 // without the query
	}
	for i, step := range []struct {
		model string
		sent  int
	}{{"a", 70}, {"b", 70}, {"a", 0}, {"b", 0}, {"c", 70}, {"a", 0}} {
		if got := use(step.model); got != step.sent {
			t.Errorf("step %d, model %s: %d cards sent, want %d", i, step.model, got, step.sent)
		}
	}
}

// What a slow embedder has made when a command ends is kept, so that each command
// brings it further; meanwhile the user is told what to wait with.
func TestSlowEmbedderGetsThereByCommands(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	for i := range 20 {
		mustPut(t, s,
			newCard(fmt.Sprintf("k%d", i), "broken pipe", fmt.Sprintf("the uploader %d sees a broken pipe", i)))
	}
	s.Close()
	e := &oneBatch{}
	for command := 1; ; command++ {
		e.done = false
		wait := time.Millisecond
		if e.asked() == 20 {
			wait = time.Minute // all are kept: nothing is asked any more
		}
		s, err := Open(dir, &Options{Embedder: e, Now: fixedNow, VectorWait: wait})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Search(t.Context(), Query{Text: "broken pipe in the uploader"}); err != nil {
			t.Fatal(err)
		}
		why := s.VectorError()
		if why == nil {
			s.Close()
			return
		}
		if !errors.Is(why, retrieval.ErrBuilding) {
			t.Fatalf("command %d: %v", command, why)
		}
		if command > 5 {
			t.Fatalf("no vectors after %d commands", command)
		}
		s.Close()
	}
}

// oneBatch answers one request for cards and hangs at the next.
type oneBatch struct {
	fakeEmbedder
	done bool
}

func (e *oneBatch) Fingerprint() string { return "onebatch" }

func (e *oneBatch) EmbedCards(ctx context.Context, texts []string) ([][]float32, error) {
	if e.done {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	e.dims, e.done = 8, true
	return e.embed(texts)
}
