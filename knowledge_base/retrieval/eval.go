package retrieval

import (
	"bufio"
	"compress/gzip"
	"context"
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
	"time"
)

// Limits of an evaluation set.
const (
	evalDepth        = 10
	maxEvalLineBytes = 16 << 20
	maxEvalDocs      = 1_000_000
)

// EvalOptions are the settings of an evaluation; the zero value is the default.
type EvalOptions struct {
	Embedder Embedder // nil: the built-in one
}

// EvalResult is what an evaluation measured. The means are over the queries
// that have at least one relevant document.
type EvalResult struct {
	NDCG    float64 `json:"ndcg@10"`
	Recall  float64 `json:"recall@10"`
	Queries int     `json:"queries"`
	Docs    int     `json:"docs"`
	P50     float64 `json:"p50_ms"` // of one query
	P99     float64 `json:"p99_ms"`
	Build   float64 `json:"build_ms"` // of the whole index, vectors included
}

// EvalError says what is wrong with an evaluation set and where.
type EvalError struct {
	Path string
	Line int // 0: the file as a whole
	Err  error
}

func (e *EvalError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}

func (e *EvalError) Unwrap() error { return e.Err }

// Eval measures the ranking on a labelled set in BEIR's layout: dataDir holds
// corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and qrels.tsv
// (query, document, grade; also as qrels/test.tsv), each as it is or gzipped
// with .gz behind its name. It uses the same index as every search, with
// no abstention, and writes nothing. Broken input is
// an *[EvalError].
func Eval(ctx context.Context, dataDir string, o *EvalOptions) (EvalResult, error) {
	if o == nil {
		o = &EvalOptions{}
	}
	var res EvalResult
	set, err := ReadSet(dataDir)
	if err != nil {
		return res, err
	}
	begin := time.Now()
	x := New(&Options{Embedder: o.Embedder})
	for _, d := range set.Docs {
		if err := ctx.Err(); err != nil {
			return res, err
		}
		x.Put(d.Document())
	}
	if err := x.Refresh(ctx); err != nil {
		return res, fmt.Errorf("evaluate %s: %w", dataDir, err)
	}
	res.Build, res.Docs = ms(time.Since(begin)), len(set.Docs)
	var took []float64
	for _, q := range set.Queries {
		grades := set.Grades[q.ID]
		if len(grades) == 0 {
			continue
		}
		begin := time.Now()
		found, err := x.rank(ctx, Query{Text: q.Text, K: evalDepth})
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return res, fmt.Errorf("evaluate %s: query %s: %w", dataDir, q.ID, err)
		}
		took = append(took, ms(time.Since(begin)))
		ndcg, recall := gradeRanking(found, grades)
		res.NDCG += ndcg
		res.Recall += recall
	}
	res.Queries = len(took)
	if res.Queries == 0 {
		return res, &EvalError{Path: dataDir, Err: errors.New("no query has a relevant document; check the ids in qrels.tsv")}
	}
	res.NDCG /= float64(res.Queries)
	res.Recall /= float64(res.Queries)
	slices.Sort(took)
	res.P50, res.P99 = took[len(took)/2], took[len(took)*99/100]
	return res, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// gradeRanking gives nDCG@10 with linear gain and recall@10, as trec_eval
// defines them.
func gradeRanking(found []Found, grades map[string]int) (ndcg, recall float64) {
	var dcg, ideal float64
	hit := 0
	for i, r := range found[:min(evalDepth, len(found))] {
		if g := grades[r.ID]; g > 0 {
			dcg += float64(g) / math.Log2(float64(i+2))
			hit++
		}
	}
	var best []int
	for _, g := range grades {
		best = append(best, g)
	}
	slices.SortFunc(best, func(a, b int) int { return b - a })
	for i, g := range best[:min(evalDepth, len(best))] {
		ideal += float64(g) / math.Log2(float64(i+2))
	}
	return dcg / ideal, float64(hit) / float64(len(best))
}

// Record is a document or a query of an evaluation set.
type Record struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Lang  string `json:"lang,omitempty"` // of a query, where the set says it
}

// Document gives the record as the index takes it.
func (r Record) Document() Document { return Document{ID: r.ID, Text: r.Title + "\n" + r.Text} }

// Set is a labelled evaluation set.
type Set struct {
	Docs, Queries []Record
	Grades        map[string]map[string]int // query → document → grade above 0
}

// ReadSet reads an evaluation set as [Eval] describes it. Broken input is an
// *[EvalError].
func ReadSet(dir string) (*Set, error) {
	set := &Set{Grades: make(map[string]map[string]int)}
	var err error
	if set.Docs, err = readEvalRecords(filepath.Join(dir, "corpus.jsonl")); err != nil {
		return nil, err
	}
	if set.Queries, err = readEvalRecords(filepath.Join(dir, "queries.jsonl")); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "qrels.tsv")
	if !evalFileExists(path) && evalFileExists(filepath.Join(dir, "qrels", "test.tsv")) {
		path = filepath.Join(dir, "qrels", "test.tsv")
	}
	err = eachEvalLine(path, func(n int, line string) error {
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return fmt.Errorf("%d columns instead of query, document and grade separated by tabs", len(f))
		}
		grade, err := strconv.Atoi(strings.TrimSpace(f[2]))
		if err != nil {
			if n == 1 {
				return nil // the heading BEIR's files have
			}
			return fmt.Errorf("grade %q is not a number", f[2])
		}
		if grade > 0 {
			if set.Grades[f[0]] == nil {
				set.Grades[f[0]] = make(map[string]int)
			}
			set.Grades[f[0]][f[1]] = grade
		}
		return nil
	})
	return set, err
}

func readEvalRecords(path string) ([]Record, error) {
	var out []Record
	seen := make(map[string]bool)
	err := eachEvalLine(path, func(_ int, line string) error {
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return err
		}
		if r.ID == "" || seen[r.ID] {
			return fmt.Errorf("_id %q is empty or appears twice", r.ID)
		}
		if len(out) == maxEvalDocs {
			return fmt.Errorf("more than %d records", maxEvalDocs)
		}
		seen[r.ID] = true
		out = append(out, r)
		return nil
	})
	if err == nil && len(out) == 0 {
		err = &EvalError{Path: path, Err: errors.New("no records")}
	}
	return out, err
}

func evalFileExists(path string) bool {
	for _, p := range []string{path, path + ".gz"} {
		if _, err := os.Stat(p); err == nil {
			return true
		}
	}
	return false
}

// eachEvalLine calls do for every line that is not blank of path or path.gz.
func eachEvalLine(path string, do func(n int, line string) error) error {
	f, err := os.Open(path)
	zipped := false
	if errors.Is(err, fs.ErrNotExist) {
		if g, gerr := os.Open(path + ".gz"); gerr == nil {
			f, err, zipped, path = g, nil, true, path+".gz"
		}
	}
	if err != nil {
		return &EvalError{Path: path, Err: errors.New("cannot be read; the folder must hold corpus.jsonl, queries.jsonl and qrels.tsv, or each with .gz")}
	}
	defer f.Close()
	var r io.Reader = f
	if zipped {
		z, err := gzip.NewReader(f)
		if err != nil {
			return &EvalError{Path: path, Err: err}
		}
		r = z
	}
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxEvalLineBytes)
	n := 0
	for sc.Scan() {
		n++
		if line := strings.TrimRight(sc.Text(), "\r"); strings.TrimSpace(line) != "" {
			if err := do(n, line); err != nil {
				return &EvalError{path, n, err}
			}
		}
	}
	if err := sc.Err(); err != nil {
		return &EvalError{path, n + 1, err}
	}
	return nil
}
