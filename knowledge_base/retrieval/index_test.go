package retrieval

import (
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// An index that is filled again answers as one that never held anything else.
func TestIndexIsFilledAgain(t *testing.T) {
	vocabulary := strings.Fields("alpha beta gamma delta parseHTTP snake_case 数据库 迁移 锁表 running runs")
	words := func(rt *rapid.T, name string) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 1, 8).Draw(rt, name), " ")
	}
	rapid.Check(t, func(rt *rapid.T) {
		texts := func() map[string]string {
			out := make(map[string]string)
			for _, id := range rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.ID).Draw(rt, "ids") {
				out[id] = words(rt, id)
			}
			return out
		}
		again, fresh := filled(t, nil, texts()), filled(t, nil, texts())
		if err := again.Fill(t.Context(), fresh.docs); err != nil {
			rt.Fatal(err)
		}
		query := words(rt, "query")
		got, _ := again.rank(t.Context(), Query{Text: query, K: 10}, newScratch(len(again.docs)))
		want, _ := fresh.rank(t.Context(), Query{Text: query, K: 10}, newScratch(len(fresh.docs)))
		if !reflect.DeepEqual(got, want) {
			rt.Fatalf("%q:\n got %v\nwant %v", query, got, want)
		}
	})
}
