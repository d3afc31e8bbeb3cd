package retrieval

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The inverted index after random additions and removals equals one built
// from what is left.
func TestIndexFollowsChanges(t *testing.T) {
	vocabulary := strings.Fields("alpha beta gamma delta parseHTTP snake_case 数据库 迁移 锁表 running runs")
	rapid.Check(t, func(rt *rapid.T) {
		x := New(nil)
		now := map[string]string{}
		for range rapid.IntRange(1, 25).Draw(rt, "changes") {
			id := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(rt, "id")
			x.Remove(id)
			delete(now, id)
			if rapid.Bool().Draw(rt, "add") {
				text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 8).Draw(rt, "text"), " ")
				x.Put(textDocument(id, text))
				now[id] = text
			}
		}
		fresh := New(nil)
		for id, text := range now {
			fresh.Put(textDocument(id, text))
		}
		for _, y := range []*Index{x, fresh} {
			if err := y.Refresh(t.Context()); err != nil {
				rt.Fatal(err)
			}
		}
		query := strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 4).Draw(rt, "query"), " ")
		got, _ := x.rank(t.Context(), Query{Text: query, K: 10}, newScratch(len(x.docs)))
		want, _ := fresh.rank(t.Context(), Query{Text: query, K: 10}, newScratch(len(fresh.docs)))
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("%q:\n got %v\nwant %v", query, got, want)
		}
	})
}
