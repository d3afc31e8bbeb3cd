package retrieval

import (
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// graded is what one setting of abstention gives: for each query the recall@5
// of what is shown, for each unrelated question whether nothing was.
type graded struct {
	recall, abstained []float64
}

// gradeSetting asks everything of the set.
func gradeSetting(t *testing.T, x *Index, set *evalData, minEvidence float64) (g graded) {
	t.Helper()
	ask := func(text string) []Found {
		found, _, err := x.Search(t.Context(), Query{Text: text, K: shownDepth, MinEvidence: minEvidence})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	for _, q := range set.Queries {
		g.recall = append(g.recall, recallAt(foundIDs(ask(q.Text)), set.Grades[q.ID], shownDepth))
	}
	for _, text := range set.Unrelated {
		nothing := 0.0
		if len(ask(text)) == 0 {
			nothing = 1
		}
		g.abstained = append(g.abstained, nothing)
	}
	return g
}

func meanAt(values []float64, at []int) float64 {
	sum := 0.0
	for _, i := range at {
		sum += values[i]
	}
	return sum / float64(len(at))
}

// gradedSettings tries the settings around the one that is in use, which is the
// first.
func gradedSettings(t *testing.T, set *evalData) (out []graded) {
	t.Helper()
	x := New(nil)
	var docs []Document
	for _, d := range set.Docs {
		docs = append(docs, textDocument(d.ID, d.findable()))
	}
	if err := x.Fill(t.Context(), docs); err != nil {
		t.Fatal(err)
	}
	if err := x.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	out = append(out, gradeSetting(t, x, set, DefaultMinEvidence))
	for _, report := range []float64{1, 1.2, 1.3, 1.4, 1.5, 1.7} {
		for _, companion := range []float64{.4, .5, .6, .8, 1} {
			for _, least := range []float64{.85, .9, .95, 1, 1.05, 1.1, 1.2} {
				x.lenient.report, x.lenient.companion = report, companion
				out = append(out, gradeSetting(t, x, set, least))
			}
		}
	}
	return out
}

// TestHeldOutHalves says what the fit of abstention to the set is worth: the
// setting with the best recall on one half that abstains from .90 there is
// measured on the other, over and over with other halves.
func TestHeldOutHalves(t *testing.T) {
	if !*nightly {
		t.Log("NOT MEASURED without -nightly: half a minute")
		return
	}
	set, err := readSet(filepath.Join("testdata", "cards"))
	if err != nil {
		t.Fatal(err)
	}
	settings := gradedSettings(t, set)
	rng := rand.New(rand.NewPCG(7, 7))
	const splits = 50
	var recall, abstained float64
	held := 0
	for range splits {
		queries, unrelated := rng.Perm(len(set.Queries)), rng.Perm(len(set.Unrelated))
		q, u := len(queries)/2, len(unrelated)/2
		for _, half := range [][4][]int{{queries[:q], queries[q:], unrelated[:u], unrelated[u:]}, {queries[q:], queries[:q], unrelated[u:], unrelated[:u]}} {
			best := settings[0]
			for _, s := range settings[1:] {
				if meanAt(s.abstained, half[2]) >= .90 && meanAt(s.recall, half[0]) > meanAt(best.recall, half[0]) {
					best = s
				}
			}
			r, a := meanAt(best.recall, half[1]), meanAt(best.abstained, half[3])
			recall, abstained = recall+r/(2*splits), abstained+a/(2*splits)
			if r >= .90 && a >= .90 {
				held++
			}
		}
	}
	t.Logf("on the half that was not chosen on: recall@5 %.3f, abstained from %.3f; both at least .90 in %d of %d halves", recall, abstained, held, 2*splits)
	if recall < .88 || abstained < .86 {
		t.Errorf("the fit is worth less than docs/design/retrieval.md says")
	}
}

// TestSameHeldOut looks at pairs called the same on the sets that those bounds
// were not chosen on.
func TestSameHeldOut(t *testing.T) {
	for _, corpus := range []string{"groups/unseen", "groups/unseen2"} {
		_, group := labelled(t, corpus, "")
		right := 0
		for id, n := range nearestIn(t, corpus, nil) {
			if !n.IsDuplicate() {
				continue
			}
			if group[id] == "" || group[id] != group[n.ID] {
				t.Errorf("%s: %s is called the same as %+v", corpus, id, n)
			}
			right++
		}
		t.Logf("%s: %d cards called the same as another, rightly", corpus, right)
	}
}
