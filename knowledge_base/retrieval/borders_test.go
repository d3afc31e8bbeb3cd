package retrieval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"anamnesis/knowledge_base/retrieval/internal/lexical"
)

// searched returns the ids that a query finds; a document that shares a place follows it behind a plus.
func searched(t *testing.T, x *Index, q Query) string {
	t.Helper()
	found, vecErr, err := x.Search(t.Context(), q)
	if err != nil || vecErr != nil {
		t.Fatal(err, vecErr)
	}
	var out []string
	for _, f := range found {
		out = append(out, strings.Join(append([]string{f.ID}, f.Also...), "+"))
	}
	return strings.Join(out, " ")
}

// TestSearchBorders: what a query may ask for, and which documents are none of its answer.
func TestSearchBorders(t *testing.T) {
	long := strings.Repeat("ab", 40) // no word
	x := filled(t, nil, map[string]string{
		"a": "sqlite database locked by two writers", "b": "network proxy refuses uploads", "c": "sqlite", "d": "!!",
		"e": long,
	})
	for k, want := range map[int]bool{-1: false, 0: true, MaxK: true, MaxK + 1: false} {
		if _, _, err := x.Search(t.Context(), Query{Text: "sqlite", K: k}); (err == nil) != want {
			t.Errorf("%d hits: %v", k, err)
		}
	}
	for _, tt := range []struct {
		q    Query
		want string
	}{
		{Query{Text: "sqlite database", MinEvidence: -1}, "a c"},
		{Query{Text: "sqlite database", MinEvidence: -1, K: 1}, "a"},
		{Query{Text: "sqlite database", MinEvidence: -1, Allowed: func(id string) bool { return id != "a" }}, "c"},
		{Query{Text: "weather tomorrow"}, ""},
		{Query{Text: long}, ""},
		{Query{Text: long, MinEvidence: -1}, "e"},
		{Query{Text: "", MinEvidence: -1}, ""},
	} {
		if got := searched(t, x, tt.q); got != tt.want {
			t.Errorf("%.20q from %v: %q, want %q", tt.q.Text, tt.q.MinEvidence, got, tt.want)
		}
	}
	found, _, err := x.Search(t.Context(), Query{Text: "sqlite database", MinEvidence: -1})
	if err != nil {
		t.Fatal(err)
	}
	strongest := max(found[0].Evidence.Strength, found[1].Evidence.Strength)
	if searched(t, x, Query{Text: "sqlite database", MinEvidence: strongest}) == "" {
		t.Error("just enough evidence is not enough")
	}
	if got := searched(t, x, Query{Text: "sqlite database", MinEvidence: math.Nextafter(strongest, 9)}); got != "" {
		t.Errorf("with less than enough evidence %q", got)
	}
}

// TestCompanions: beside a strong document, another needs a share of the evidence and half of the score.
func TestCompanions(t *testing.T) {
	x := filled(t, nil, map[string]string{
		"a": "sqlite database locked by two writers", "b": "network proxy",
		"c": "sqlite waits for the other process of the build to end",
	})
	q := Query{Text: "sqlite database locked by two writers", MinEvidence: -1, Prior: func(id string) float64 {
		if id == "a" {
			return 0.01
		}
		return 1
	}}
	found, _, err := x.Search(t.Context(), q)
	if err != nil || len(found) != 2 {
		t.Fatal(found, err)
	}
	weak := min(found[0].Evidence.Strength, found[1].Evidence.Strength)
	q.MinEvidence = weak / x.lenient.companion
	for q.MinEvidence*x.lenient.companion > weak {
		q.MinEvidence = math.Nextafter(q.MinEvidence, 0)
	}
	for next := math.Nextafter(q.MinEvidence, 9); next*x.lenient.companion <= weak; next = math.Nextafter(next, 9) {
		q.MinEvidence = next
	}
	if got := searched(t, x, q); !strings.Contains(got, "c") {
		t.Errorf("with just enough evidence %q", got)
	}
	if q.MinEvidence = math.Nextafter(q.MinEvidence, 9); strings.Contains(searched(t, x, q), "c") {
		t.Error("with less than enough evidence")
	}
	same := filled(t, nil, map[string]string{"a": "sqlite database locked", "c": "sqlite database locked"})
	for prior, want := range map[float64]string{0.5: "a+c", math.Nextafter(0.5, 0): "a"} {
		q := Query{
			Text: "sqlite database", MinEvidence: 1e-9,
			Prior: func(id string) float64 { return map[string]float64{"a": 1, "c": prior}[id] },
		}
		if got := searched(t, same, q); got != want {
			t.Errorf("%v of the score: %q, want %q", prior, got, want)
		}
	}
}

// TestNearBorders: a document resembles those with which it shares words, whichever comes first.
func TestNearBorders(t *testing.T) {
	x := filled(t, nil,
		map[string]string{"a": "sqlite database locked", "b": "sqlite database locks", "c": "network proxy", "d": "!!"})
	for id, want := range map[string]string{"a": "b", "b": "a", "c": "", "d": "", "unknown": ""} {
		near, err := x.Near(t.Context(), id, 9)
		var got []string
		for _, n := range near {
			got = append(got, n.ID)
		}
		if strings.Join(got, " ") != want || err != nil {
			t.Errorf("near %s: %q, %v", id, got, err)
		}
	}
	for likeness, want := range map[float64][2]bool{0.4: {true, true}, 0.39: {false, true}, 0.25: {false, true}, 0.24: {false, false}} {
		if n := (Neighbour{Lexical: likeness}); n.IsDuplicate() != want[0] || n.Related() != want[1] {
			t.Errorf("%v: %v, %v", likeness, n.IsDuplicate(), n.Related())
		}
	}
}

// TestSharedPlaces: a document stands with the first that it nearly repeats, and by itself if it says no where that
// says yes.
func TestSharedPlaces(t *testing.T) {
	for _, tt := range []struct{ a, b, c, want string }{
		{"alpha beta gamma delta", "epsilon zeta theta kappa", "alpha beta gamma delta epsilon zeta theta kappa", "a+c b"},
		{"alpha beta gamma delta", "alpha beta gamma kappa", "x", "a+b c"},
		{"alpha beta gamma delta", "alpha beta theta kappa", "x", "a b c"},
		{"alpha beta gamma delta zeta theta", "alpha beta gamma delta", "x", "a+b c"},
		{"alpha beta", "never alpha beta", "not alpha beta", "a b+c"},
		{"alpha beta don't", "alpha beta", "x", "a b c"},
	} {
		x := filled(t, nil, map[string]string{"a": tt.a, "b": tt.b, "c": tt.c})
		out := x.shareSlots([]Found{{ID: "a"}, {ID: "b"}, {ID: "c"}}, 3)
		var got []string
		for _, f := range out {
			got = append(got, strings.Join(append([]string{f.ID}, f.Also...), "+"))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%+v: %q", tt, got)
		}
		if out = x.shareSlots([]Found{{ID: "a"}, {ID: "b"}, {ID: "c"}}, 1); len(out) != 1 {
			t.Errorf("%+v: %d places of one", tt, len(out))
		}
	}
}

// TestWeighed: the terms of a stack trace's frames follow those of the error, and count less.
func TestWeighed(t *testing.T) {
	for text, want := range map[string]string{
		"boom load": "boom 1 load 1",
		"boom load boom\n  File \"parse.py\", line 3, in load\n": "boom 1.69 load 1 fil 0.25 pars 0.25 py 0.25 lin 0.25 3 0.25 in 0.25",
		"  File \"parse.py\", line 3\n":                          "fil 1 pars 1 py 1 lin 1 3 1",
	} {
		w := weigh(text, lexical.Words)
		var got []string
		for i, term := range w.terms {
			got = append(got, fmt.Sprintf("%s %.3g", term, w.weights[i]))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestGroupBorders: a group is as alike as was asked for, and no larger than its limit.
func TestGroupBorders(t *testing.T) {
	two := []Lesson{
		{"a", "database locked by a writer", "retry the write"},
		{"b", "database locked by two writers", "retry writes"}, {"c", "proxy refuses", "set a header"},
	}
	found := FindGroups(two, 0.01)
	if len(found) != 1 || !slices.Equal(found[0].IDs, []string{"a", "b"}) {
		t.Fatalf("%+v", found)
	}
	at := found[0].Likeness
	if got := FindGroups(two, at); len(got) != 1 || got[0].Likeness != at {
		t.Errorf("as alike as asked for: %+v", got)
	}
	if got := FindGroups(two, math.Nextafter(at, 1)); len(got) != 0 {
		t.Errorf("less alike: %+v", got)
	}
	for n, want := range map[int][]int{MaxGroup: {MaxGroup}, MaxGroup + 1: {MaxGroup}} {
		var same []Lesson
		for i := range n {
			same = append(same, Lesson{string(rune('a' + i)), "database locked by a writer", "retry the write"})
		}
		var sizes []int
		for _, g := range FindGroups(append(same, two[2]), 0.5) {
			sizes = append(sizes, len(g.IDs))
		}
		if !slices.Equal(sizes, want) {
			t.Errorf("%d of one kind: groups of %v, want %v", n, sizes, want)
		}
	}
}

// silent is an embedder that answers no query.
type silent struct{ oracle }

func (silent) EmbedQuery(context.Context, string) ([]float32, error) {
	return nil, errors.New("silent")
}

// TestSilentEmbedder: without an answer of the embedder, words decide, and the reason is told.
func TestSilentEmbedder(t *testing.T) {
	x := filled(t, &Options{Embedder: silent{}}, map[string]string{"a": "sqlite database locked", "b": "network proxy"})
	if err := x.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time, it rests
		found, vecErr, err := x.Search(t.Context(), Query{Text: "sqlite database locked"})
		if len(found) != 1 || found[0].ID != "a" || vecErr == nil || err != nil {
			t.Errorf("%+v, %v, %v", found, vecErr, err)
		}
	}
}
