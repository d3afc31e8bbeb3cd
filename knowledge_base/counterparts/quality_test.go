package counterparts

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/blevesearch/bleve/v2/analysis/lang/en"

	"anamnesis/knowledge_base/retrieval"
)

// dataSets are the folders of the labelled sets: the project's own, and the
// public ones where they are.
func dataSets(t testing.TB) map[string]string {
	t.Helper()
	sets := map[string]string{"cards": filepath.Join("..", "retrieval", "testdata", "cards")}
	public := filepath.Join("..", "..", "..", "shared", "data")
	if dir := os.Getenv("ANAMNESIS_BENCH_DATA"); dir != "" {
		public = dir
	}
	for _, name := range []string{"clippy-messages", "cosqa"} {
		dir := filepath.Join(public, "retrieval", name)
		_, err := os.Stat(dir)
		if err == nil {
			sets[name] = dir
		} else if os.Getenv("ANAMNESIS_CI") != "" {
			t.Fatalf("CI needs the public sets: %v", err)
		} else {
			t.Logf("SKIPPED %s: %v; set ANAMNESIS_BENCH_DATA", name, err)
		}
	}
	return sets
}

// labelled is a labelled set in BEIR's layout, each file as it is or gzipped.
type labelled struct {
	docs    []retrieval.Document
	queries map[string]string
	grades  map[string]map[string]float64 // query → document → grade
}

func readSet(t testing.TB, dir string) labelled {
	t.Helper()
	set := labelled{queries: make(map[string]string), grades: make(map[string]map[string]float64)}
	each := func(name string, do func(line string) error) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			var f *os.File
			if f, err = os.Open(filepath.Join(dir, name+".gz")); err == nil {
				defer f.Close()
				var z *gzip.Reader
				if z, err = gzip.NewReader(f); err == nil {
					data, err = io.ReadAll(z)
				}
			}
		}
		for line := range strings.Lines(string(data)) {
			err = errors.Join(err, do(line))
		}
		if err != nil {
			t.Fatalf("%s of %s: %v", name, dir, err)
		}
	}
	var r struct {
		ID    string `json:"_id"`
		Title string
		Text  string
	}
	each("corpus.jsonl", func(line string) error {
		r.Title = ""
		err := json.Unmarshal([]byte(line), &r)
		set.docs = append(set.docs, document(r.ID, r.Title+"\n"+r.Text))
		return err
	})
	each("queries.jsonl", func(line string) error {
		err := json.Unmarshal([]byte(line), &r)
		set.queries[r.ID] = r.Text
		return err
	})
	each("qrels.tsv", func(line string) error {
		f := strings.Fields(line)
		if set.grades[f[0]] == nil {
			set.grades[f[0]] = make(map[string]float64)
		}
		grade, err := strconv.ParseFloat(f[2], 64)
		if err == nil && grade > 0 {
			set.grades[f[0]][f[1]] = grade
		}
		return nil // the first line of a public set is a heading
	})
	return set
}

func document(id, text string) retrieval.Document {
	return retrieval.Document{ID: id, Hash: sha256.Sum256([]byte(text)), Text: func() string { return text }}
}

// ndcg returns nDCG@10 with linear gain, as trec_eval defines it.
func ndcg(ranking []string, grades map[string]float64) float64 {
	gain := func(list []float64) (sum float64) {
		for i, grade := range list[:min(10, len(list))] {
			sum += grade / math.Log2(float64(i+2))
		}
		return sum
	}
	var found []float64
	for _, id := range ranking {
		found = append(found, grades[id])
	}
	best := slices.Sorted(maps.Values(grades))
	slices.Reverse(best)
	return gain(found) / gain(best)
}

// TestQuality: on every labelled set the right card stands higher than with
// FTS5 and with bleve.
func TestQuality(t *testing.T) {
	for name, dir := range dataSets(t) {
		set := readSet(t, dir)
		score := func(e engine) float64 {
			var sum float64
			n := 0
			for id, q := range set.queries {
				grades := set.grades[id]
				if len(grades) == 0 {
					continue
				}
				ids, err := e.find(t.Context(), q)
				if err != nil {
					t.Fatalf("%s, %s, %q: %v", name, e.name, q, err)
				}
				sum += ndcg(ids, grades)
				n++
			}
			t.Logf("%s: %s nDCG@10 %.4f", name, e.name, sum/float64(n))
			return sum / float64(n)
		}
		own := score(ours(t, set.docs))
		for _, e := range []engine{fts5(t, set.docs), bleveEngine(t, set.docs)} {
			if other := score(e); other >= own {
				t.Errorf("%s: %s reaches %.4f, ours %.4f", name, e.name, other, own)
			}
		}
	}
}
