package retrieval

import (
	"bufio"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Limits of a set.
const (
	maxLineBytes = 16 << 20
	maxDocs      = 1_000_000
)

// record is a document or a query of a set.
type record struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Lang  string `json:"lang,omitempty"`  // of a query, where the set says it
	Group string `json:"group,omitempty"` // of a document that says the same as others, where the set says it
}

// findable is what a document is found by.
func (r record) findable() string { return r.Title + "\n" + r.Text }

// evalData is a labelled evaluation set.
type evalData struct {
	Docs, Queries []record
	Grades        map[string]map[string]int // query → document → grade above 0
	Unrelated     []string                  // questions that no document answers
}

// readSet reads the set in a folder: corpus.jsonl (_id, title, text), queries.jsonl (_id, text, lang) and
// qrels.tsv (query, document, grade; also as qrels/test.tsv), each as it is or gzipped with .gz behind
// its name, and unrelated.txt if there is one.
func readSet(dir string) (*evalData, error) {
	set := &evalData{Grades: make(map[string]map[string]int)}
	var err error
	if set.Docs, err = readRecords(filepath.Join(dir, "corpus.jsonl")); err != nil {
		return nil, err
	}
	if set.Queries, err = readRecords(filepath.Join(dir, "queries.jsonl")); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "qrels.tsv")
	if !exists(path) && exists(filepath.Join(dir, "qrels", "test.tsv")) {
		path = filepath.Join(dir, "qrels", "test.tsv")
	}
	err = eachLine(path, func(n int, line string) error {
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return fmt.Errorf("%d columns instead of query, document and grade separated by tabs", len(f))
		}
		g, err := strconv.Atoi(strings.TrimSpace(f[2]))
		if err != nil {
			if n == 1 {
				return nil // the heading BEIR's files have
			}
			return fmt.Errorf("grade %q is not a number", f[2])
		}
		if g > 0 {
			if set.Grades[f[0]] == nil {
				set.Grades[f[0]] = make(map[string]int)
			}
			set.Grades[f[0]][f[1]] = g
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	path = filepath.Join(dir, "unrelated.txt")
	if exists(path) {
		err = eachLine(path, func(_ int, line string) error {
			set.Unrelated = append(set.Unrelated, line)
			return nil
		})
	}
	return set, err
}

// readRecords reads the documents or queries of a file.
func readRecords(path string) ([]record, error) {
	var out []record
	seen := make(map[string]bool)
	err := eachLine(path, func(_ int, line string) error {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return err
		}
		if r.ID == "" || seen[r.ID] {
			return fmt.Errorf("_id %q is empty or appears twice", r.ID)
		}
		if len(out) == maxDocs {
			return fmt.Errorf("more than %d records", maxDocs)
		}
		seen[r.ID] = true
		out = append(out, r)
		return nil
	})
	if err == nil && len(out) == 0 {
		err = fmt.Errorf("%s: no records", path)
	}
	return out, err
}

func exists(path string) bool {
	for _, p := range []string{path, path + ".gz"} {
		if _, err := os.Stat(p); err == nil {
			return true
		}
	}
	return false
}

// eachLine calls do for every line that is not blank of path or path.gz.
func eachLine(path string, do func(n int, line string) error) error {
	f, err := os.Open(path)
	zipped := false
	if errors.Is(err, fs.ErrNotExist) {
		if g, gerr := os.Open(path + ".gz"); gerr == nil {
			f, err, zipped, path = g, nil, true, path+".gz"
		}
	}
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if zipped {
		z, err := gzip.NewReader(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r = z
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLineBytes)
	n := 0
	for sc.Scan() {
		n++
		if line := strings.TrimRight(sc.Text(), "\r"); strings.TrimSpace(line) != "" {
			if err := do(n, line); err != nil {
				return fmt.Errorf("%s:%d: %w", path, n, err)
			}
		}
	}
	if err := sc.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", path, n+1, err)
	}
	return nil
}

// evalDepth is how deep a ranking is graded.
const evalDepth = 10

// grade returns nDCG@10 with linear gain and recall@10 of a ranking of ids, as
// trec_eval defines them; grades are those of all relevant documents.
func grade(ranking []string, grades map[string]int) (ndcg, recall float64) {
	var dcg, ideal float64
	for i, id := range ranking[:min(evalDepth, len(ranking))] {
		dcg += float64(grades[id]) / math.Log2(float64(i+2))
	}
	var best []int
	for _, g := range grades {
		best = append(best, g)
	}
	slices.SortFunc(best, func(a, b int) int { return b - a })
	for i, g := range best[:min(evalDepth, len(best))] {
		ideal += float64(g) / math.Log2(float64(i+2))
	}
	return dcg / ideal, recallAt(ranking, grades, evalDepth)
}

// recallAt returns the share of the relevant documents among the first k.
func recallAt(ranking []string, grades map[string]int, k int) float64 {
	hit := 0
	for _, id := range ranking[:min(k, len(ranking))] {
		if grades[id] > 0 {
			hit++
		}
	}
	return float64(hit) / float64(len(grades))
}

// textDocument returns a document that keeps its text.
func textDocument(id, text string) Document {
	return Document{ID: id, Hash: sha256.Sum256([]byte(text)), Text: func() string { return text }}
}

// filled returns an index of texts by their ids.
func filled(t testing.TB, o *Options, texts map[string]string) *Index {
	t.Helper()
	var docs []Document
	for id, text := range texts {
		docs = append(docs, textDocument(id, text))
	}
	x := New(o)
	if err := x.Fill(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	return x
}
