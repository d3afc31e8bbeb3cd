package counterparts

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/blevesearch/bleve/v2"
	_ "modernc.org/sqlite"

	"anamnesis/knowledge_base/retrieval"
)

// depth is how many documents each engine is asked for.
const depth = 10

// engine finds the ids of the documents nearest to a query, best first.
type engine struct {
	name string
	find func(ctx context.Context, query string) ([]string, error)
}

func ours(t testing.TB, docs []retrieval.Document) engine {
	t.Helper()
	x := retrieval.New(nil)
	if err := x.Fill(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if err := x.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return engine{"ours", func(ctx context.Context, query string) ([]string, error) {
		found, vecErr, err := x.Search(ctx, retrieval.Query{Text: query, K: depth, MinEvidence: -1})
		if err == nil {
			err = vecErr
		}
		ids := make([]string, len(found))
		for i, f := range found {
			ids[i] = f.ID
		}
		return ids, err
	}}
}

// fts5 ranks by SQLite's bm25 over words stemmed by Porter's rules; a query is
// its words joined by OR, as a search box would send it.
func fts5(t testing.TB, docs []retrieval.Document) engine {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "fts.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`CREATE VIRTUAL TABLE cards USING fts5(id UNINDEXED, text, tokenize='porter unicode61')`); err != nil {
		t.Fatal(err)
	}
	insert, err := tx.Prepare(`INSERT INTO cards VALUES (?, ?)`)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if _, err := insert.Exec(d.ID, d.Text()); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	ask, err := db.Prepare(`SELECT id FROM cards WHERE cards MATCH ? ORDER BY rank LIMIT ?`)
	if err != nil {
		t.Fatal(err)
	}
	return engine{"fts5", func(ctx context.Context, query string) ([]string, error) {
		words := strings.FieldsFunc(query, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
		if len(words) == 0 {
			return nil, nil
		}
		rows, err := ask.QueryContext(ctx, `"`+strings.Join(words, `" OR "`)+`"`, depth)
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var ids []string
		for rows.Next() {
			var id string
			if err := rows.Scan(&id); err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, rows.Err()
	}}
}

// bleveEngine is bleve's in-memory index with its English analyzer and a match
// query.
func bleveEngine(t testing.TB, docs []retrieval.Document) engine {
	t.Helper()
	mapping := bleve.NewIndexMapping()
	mapping.DefaultAnalyzer = "en"
	index, err := bleve.NewMemOnly(mapping)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { index.Close() })
	batch := index.NewBatch()
	for i, d := range docs {
		if err := batch.Index(d.ID, map[string]string{"text": d.Text()}); err != nil {
			t.Fatal(err)
		}
		if batch.Size() >= 1000 || i == len(docs)-1 {
			if err := index.Batch(batch); err != nil {
				t.Fatal(err)
			}
			batch = index.NewBatch()
		}
	}
	return engine{"bleve", func(ctx context.Context, query string) ([]string, error) {
		q := bleve.NewMatchQuery(query)
		q.SetField("text")
		res, err := index.SearchInContext(ctx, bleve.NewSearchRequestOptions(q, depth, 0, false))
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, hit := range res.Hits {
			ids = append(ids, hit.ID)
		}
		return ids, nil
	}}
}
