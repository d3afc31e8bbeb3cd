package retrieval

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits of an evaluation set.
const (
	maxEvalLineBytes = 16 << 20
	maxEvalDocs      = 1_000_000
)

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

// Record is a document or a query of an evaluation set.
type Record struct {
	ID    string `json:"_id"`
	Title string `json:"title"`
	Text  string `json:"text"`
	Lang  string `json:"lang,omitempty"`  // of a query, where the set says it
	Group string `json:"group,omitempty"` // of a document that says the same as others, where the set says it
}

// Document returns the record as the index takes it.
func (r Record) Document() Document { return NewDocument(r.ID, r.Title+"\n"+r.Text) }

// Set is a labelled evaluation set.
type Set struct {
	Docs, Queries []Record
	Grades        map[string]map[string]int // query → document → grade above 0
	Unrelated     []string                  // questions that no document answers
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
	if err != nil {
		return nil, err
	}
	path = filepath.Join(dir, "unrelated.txt")
	if evalFileExists(path) {
		err = eachEvalLine(path, func(_ int, line string) error {
			set.Unrelated = append(set.Unrelated, line)
			return nil
		})
	}
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
