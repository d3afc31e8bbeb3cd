package counterparts

import (
	"os"
	"path/filepath"
	"testing"

	_ "github.com/blevesearch/bleve/v2/analysis/lang/en"

	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/retrieval/evalset"
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

func documents(set *evalset.Set) []retrieval.Document {
	docs := make([]retrieval.Document, len(set.Docs))
	for i, d := range set.Docs {
		docs[i] = retrieval.NewDocument(d.ID, d.Findable())
	}
	return docs
}

// TestQuality: on every labelled set the right card stands higher than with
// FTS5 and with bleve.
func TestQuality(t *testing.T) {
	for name, dir := range dataSets(t) {
		set, err := evalset.Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		docs := documents(set)
		score := func(e engine) float64 {
			var sum float64
			n := 0
			for _, q := range set.Queries {
				grades := set.Grades[q.ID]
				if len(grades) == 0 {
					continue
				}
				ids, err := e.find(t.Context(), q.Text)
				if err != nil {
					t.Fatalf("%s, %s, %q: %v", name, e.name, q.Text, err)
				}
				ndcg, _ := evalset.Grade(ids, grades)
				sum += ndcg
				n++
			}
			t.Logf("%s: %s nDCG@10 %.4f", name, e.name, sum/float64(n))
			return sum / float64(n)
		}
		own := score(ours(t, docs))
		for _, e := range []engine{fts5(t, docs), bleveEngine(t, docs)} {
			if other := score(e); other >= own {
				t.Errorf("%s: %s reaches %.4f, ours %.4f", name, e.name, other, own)
			}
		}
	}
}
