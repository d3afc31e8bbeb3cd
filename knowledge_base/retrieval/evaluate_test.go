package retrieval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// How deep an answer is looked at.
const (
	shownDepth = DefaultK
)

// EvalOptions are the settings of an evaluation; the zero value is the default.
type EvalOptions struct {
	Embedder Embedder // nil: none
}

// EvalResult is what an evaluation measured. The means are over the queries
// that have at least one relevant document.
type EvalResult struct {
	EvalMeans
	Docs int `json:"docs"`
	// Languages has the means of the queries of each language the set names.
	Languages map[string]EvalMeans `json:"languages,omitempty"`
	// Unrelated is how many questions without an answer the set has, Abstained
	// the share of them for which nothing was found.
	Unrelated int     `json:"unrelated,omitempty"`
	Abstained float64 `json:"abstained,omitempty"`
	P50       float64 `json:"p50_ms"` // of one query
	P99       float64 `json:"p99_ms"`
	Build     float64 `json:"build_ms"` // of the whole index, vectors included
}

// EvalMeans are the means over some queries, each 0 to 1.
type EvalMeans struct {
	NDCG   float64 `json:"ndcg@10"`
	Recall float64 `json:"recall@10"`
	// Shown is recall@5 of what [Index.Search] returns: a right document that it
	// does not show for want of evidence is missed.
	Shown float64 `json:"recall@5"`
	// Precision is the share of right documents among all that are shown.
	Precision float64 `json:"precision@5"`
	Queries   int     `json:"queries"`

	shown, right int
}

func (m *EvalMeans) add(ndcg, recall, shown float64, ids []string, grades map[string]int) {
	m.shown += len(ids)
	for _, id := range ids {
		m.right += min(grades[id], 1)
	}
	m.NDCG += ndcg
	m.Recall += recall
	m.Shown += shown
	m.Queries++
}

func (m EvalMeans) mean() EvalMeans {
	n := float64(max(1, m.Queries))
	return EvalMeans{
		NDCG: m.NDCG / n, Recall: m.Recall / n, Shown: m.Shown / n,
		Precision: float64(m.right) / float64(max(1, m.shown)), Queries: m.Queries,
	}
}

// Eval measures the search on a labelled set in BEIR's layout: dataDir holds
// corpus.jsonl (_id, title, text), queries.jsonl (_id, text, and lang where
// the means are wanted by language) and qrels.tsv (query, document, grade; also as qrels/test.tsv), each
// as it is or gzipped with .gz behind its name, and unrelated.txt where
// abstention is to be measured. nDCG@10 and recall@10 are of the whole ranking,
// recall@5 of what a search shows. It uses the same index as every search and
// writes nothing. Broken input is an *[EvalError].
func Eval(ctx context.Context, dataDir string, o *EvalOptions) (EvalResult, error) {
	if o == nil {
		o = &EvalOptions{}
	}
	set, err := readSet(dataDir)
	if err != nil {
		return EvalResult{}, err
	}
	return evalSet(ctx, set, o)
}

func evalSet(ctx context.Context, set *evalData, o *EvalOptions) (EvalResult, error) {
	res := EvalResult{Docs: len(set.Docs), Unrelated: len(set.Unrelated)}
	begin := time.Now()
	x := New(&Options{Embedder: o.Embedder})
	docs := make([]Document, len(set.Docs))
	for i, d := range set.Docs {
		docs[i] = textDocument(d.ID, d.findable())
	}
	if err := x.Fill(ctx, docs); err != nil {
		return res, err
	}
	if err := x.Await(ctx); err != nil {
		return res, err
	}
	res.Build = ms(time.Since(begin))
	if err := evalRanking(ctx, x, set, &res); err != nil {
		return res, err
	}
	for _, text := range set.Unrelated {
		found, _, err := x.Search(ctx, Query{Text: text})
		if err != nil {
			return res, err
		}
		if len(found) == 0 {
			res.Abstained += 1 / float64(res.Unrelated)
		}
	}
	return res, nil
}

// evalRanking asks the queries that have an answer.
func evalRanking(ctx context.Context, x *Index, set *evalData, res *EvalResult) error {
	var all EvalMeans
	langs := make(map[string]EvalMeans)
	var took []float64
	for _, q := range set.Queries {
		grades := set.Grades[q.ID]
		if len(grades) == 0 {
			continue
		}
		begin := time.Now()
		found, shown, err := evalQuery(ctx, x, q.Text)
		if err != nil {
			return fmt.Errorf("query %s: %w", q.ID, err)
		}
		took = append(took, ms(time.Since(begin)))
		ndcg, recall := grade(foundIDs(found), grades)
		shownRecall := recallAt(foundIDs(shown), grades, shownDepth)
		all.add(ndcg, recall, shownRecall, foundIDs(shown), grades)
		if q.Lang != "" {
			m := langs[q.Lang]
			m.add(ndcg, recall, shownRecall, foundIDs(shown), grades)
			langs[q.Lang] = m
		}
	}
	if len(took) == 0 {
		return errors.New("no query has a relevant document; check the ids in qrels.tsv")
	}
	res.EvalMeans = all.mean()
	for lang, m := range langs {
		if res.Languages == nil {
			res.Languages = make(map[string]EvalMeans)
		}
		res.Languages[lang] = m.mean()
	}
	slices.Sort(took)
	res.P50, res.P99 = took[len(took)/2], took[len(took)*99/100]
	return nil
}

// evalQuery returns the whole ranking and what a search shows of it.
func evalQuery(ctx context.Context, x *Index, text string) (ranking, shown []Found, err error) {
	s := newScratch(len(x.docs))
	ranking, err = x.rank(ctx, Query{Text: text, K: evalDepth}, s)
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return nil, nil, err
	}
	shown = x.admit(Query{Text: text, K: shownDepth, MinEvidence: DefaultMinEvidence}, slices.Clone(ranking), s)
	return ranking, shown, nil
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func foundIDs(found []Found) []string {
	ids := make([]string, len(found))
	for i, f := range found {
		ids[i] = f.ID
	}
	return ids
}
