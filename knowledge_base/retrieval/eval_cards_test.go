package retrieval

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The project's own set was written before anything was measured on it, and
// stays as it is.
func TestCardsSetIsFrozen(t *testing.T) {
	for _, frozen := range []struct {
		dir, want string
		files     []string
	}{
		{"cards", "bb710768e74c8690a70c4650e937e12a7855f85dcce9d21179193a24c70cd2d2", []string{"corpus.jsonl", "queries.jsonl", "qrels.tsv", "unrelated.txt"}},
		{"lessons", "eade0fbd9515a6d30d4864b20515f00d4c37557819766250d0f7fe22405a6d1b", []string{"corpus.jsonl", "queries.jsonl", "qrels.tsv", "unrelated.txt"}},
		{"groups", "3ee12f67d4edac6bff6e219739f31bb7ef8370c92d66e60e84a7542496388e55", []string{"cards.tsv", "unseen/corpus.jsonl", "unseen2/corpus.jsonl"}},
	} {
		h := sha256.New()
		for _, name := range frozen.files {
			b, err := os.ReadFile(filepath.Join("testdata", frozen.dir, name))
			if err != nil {
				t.Fatal(err)
			}
			h.Write(b)
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != frozen.want {
			t.Errorf("%s was edited: %s; a better set is a new folder beside it", frozen.dir, got)
		}
	}
}

// TestEvalCards holds the search to what was promised on that set, with
// abstention at work: a card that is not shown is not found.
func TestEvalCards(t *testing.T) {
	res, err := Eval(t.Context(), filepath.Join("testdata", "cards"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", res)
	if res.Docs < 120 || res.Queries < 300 || res.Unrelated < 100 {
		t.Fatalf("the set has shrunk: %d documents, %d queries, %d unrelated", res.Docs, res.Queries, res.Unrelated)
	}
	if res.NDCG < .90 {
		t.Errorf("nDCG@10 %.4f, want at least .90: are function words weighed like the others?", res.NDCG)
	}
	if res.Shown < .90 || res.Precision < .38 {
		t.Errorf("recall@5 %.3f, want at least .90; precision@5 %.3f, want at least .38", res.Shown, res.Precision)
	}
	if res.Abstained < .90 {
		t.Errorf("abstained from %.2f of what has no answer, want at least .90", res.Abstained)
	}
	english := res.Languages["en"].Shown
	for _, lang := range []string{"zh", "mixed"} {
		m := res.Languages[lang]
		if m.Queries == 0 || m.Shown < english-.03 {
			t.Errorf("%s: recall@5 %.3f of %d queries; English has %.3f", lang, m.Shown, m.Queries, english)
		}
	}
}

// half returns the questions of the set whose place is odd or even.
func half(set *evalData, odd bool) *evalData {
	keep := 0
	if !odd {
		keep = 1
	}
	out := &evalData{Docs: set.Docs, Grades: set.Grades}
	for i, q := range set.Queries {
		if i%2 == keep {
			out.Queries = append(out.Queries, q)
		}
	}
	for i, text := range set.Unrelated {
		if i%2 == keep {
			out.Unrelated = append(out.Unrelated, text)
		}
	}
	return out
}

// softwareErrors is how many lines of testdata/lessons/unrelated.txt, the first,
// are errors and questions of software work.
const softwareErrors = 60

// TestEvalLessons: chosen on the odd questions, reported on the even ones. Of
// what is shown nearly half is right, and an error that no card answers shows
// nothing.
func TestEvalLessons(t *testing.T) {
	whole, err := readSet(filepath.Join("testdata", "lessons"))
	if err != nil {
		t.Fatal(err)
	}
	for _, odd := range []bool{true, false} {
		set := half(whole, odd)
		res, err := evalSet(t.Context(), set, &EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		errorsOnly := *set
		errorsOnly.Unrelated = set.Unrelated[:softwareErrors/2]
		software, err := evalSet(t.Context(), &errorsOnly, &EvalOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("chosen on: %v; recall@5 %.3f, precision@5 %.3f, abstained from software errors %.3f, from all %.3f",
			odd, res.Shown, res.Precision, software.Abstained, res.Abstained)
		if odd {
			continue
		}
		if res.Shown < .87 || res.Precision < .45 || software.Abstained < .85 || res.Abstained < .90-1e-9 {
			t.Errorf("the half that was not chosen on: %+v, software errors %.3f", res, software.Abstained)
		}
	}
}

// Of cards that nearly repeat one another one has the place, and names the
// others; one that says the opposite has its own.
func TestNearDuplicatesShareASlot(t *testing.T) {
	x := filled(t, nil, map[string]string{
		"a": "sqlite database is locked with two writers: set busy_timeout on the connection",
		"b": "sqlite database is locked with two writers: set busy_timeout on each connection",
		"c": "sqlite database is locked with two writers: never set busy_timeout on the connection",
		"d": "sqlite database is locked while a backup copies the file",
	})
	if err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	found, _, err := x.Search(t.Context(),
		Query{Text: "sqlite database is locked, two writers, busy_timeout on the connection", K: 4})
	if err != nil || len(found) != 2 || found[1].ID != "c" || found[0].ID != "a" || len(found[0].Also) != 1 ||
		found[0].Also[0] != "b" {
		t.Errorf("%+v, %v", found, err)
	}
	for _, name := range []string{"cards", "lessons"} {
		docs, err := readRecords(filepath.Join("testdata", name, "corpus.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range docs {
			for _, b := range docs[:i] {
				if got := overlap(contentWords(a.findable()), contentWords(b.findable())); got >= repeats {
					t.Errorf("%s: %s and %s are about different things and would share a place: %.2f", name,
						a.ID, b.ID, got)
				}
			}
		}
	}
}

// What a traceback's frames say does not stand in the way of its error.
func TestTracebackSignatureFirst(t *testing.T) {
	x := filled(t, nil, map[string]string{
		"own":    "psycopg2 OperationalError: too many clients already\nUse a pool with at most 20 connections.",
		"runner": "celery worker main loop: run task, call handler, import module\nworker.py run main task handler execute retry",
		"site":   "site-packages of python3.11: lib python3.11 site-packages celery app trace task",
	})
	if err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	trace := "Traceback (most recent call last):\n" +
		"  File \"/usr/lib/python3.11/site-packages/celery/app/trace.py\", line 451, in trace_task\n    R = retval = fun(*args, **kwargs)\n" +
		"  File \"/usr/lib/python3.11/site-packages/celery/worker/worker.py\", line 12, in run\n    handler.execute(task, retry=True)\n" +
		"  File \"/srv/worker/main.py\", line 9, in handler\n    import_module(call)\n"
	found, _, err := x.Search(t.Context(),
		Query{Text: trace + "OperationalError: FATAL: sorry, too many clients already"})
	if err != nil || len(found) == 0 || found[0].ID != "own" {
		t.Errorf("%+v, %v", found, err)
	}
	for name, text := range map[string]string{
		"node": "Error: boom\n    at Object.<anonymous> (/srv/a.js:1:7)\n    at node:internal/main:5\n",
		"java": "java.lang.IllegalStateException: boom\n\tat com.acme.Main.run(Main.java:4)\n",
		"go":   "panic: boom\n\ngoroutine 1 [running]:\nmain.run(0x1, 0x2)\n\t/src/main.go:8 +0x1d\n",
	} {
		if got := signature(text); len(got) > 45 || !strings.Contains(got, "boom") {
			t.Errorf("%s: %q", name, got)
		}
	}
	if only := "  File \"a.py\", line 3, in f\n    f()\n"; signature(only) != only {
		t.Error("a query of frames alone was emptied")
	}
}
