package retrieval

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// labelled reads a set of cards as lessons, and which group each is in. With
// labels "" the set says it itself.
func labelled(t *testing.T, corpus, labels string) ([]Lesson, map[string]string) {
	t.Helper()
	docs, err := readRecords(filepath.Join("testdata", corpus, "corpus.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	group := make(map[string]string)
	var lessons []Lesson
	for _, d := range docs {
		trouble, remedy, _ := strings.Cut(d.Text, "\n- **Solution**:")
		remedy, _, _ = strings.Cut(remedy, "\n- **Constraint**:")
		lessons = append(lessons, Lesson{d.ID, d.Title + "\n" + strings.TrimPrefix(trouble, "- **Issue**:"), remedy})
		group[d.ID] = d.Group
	}
	if labels == "" {
		return lessons, group
	}
	data, err := os.ReadFile(filepath.Join("testdata", labels))
	if err != nil {
		t.Fatal(err)
	}
	clear(group)
	for line := range strings.Lines(string(data)) {
		name, id, ok := strings.Cut(strings.TrimSpace(line), "\t")
		if !ok {
			t.Fatalf("%s: %q", labels, line)
		}
		group[id] = name
	}
	return lessons, group
}

// grouped is how groups found compare with labels.
type grouped struct {
	found, right   int // groups; right ones lie within a label
	labels, met    int // labels; those of which two cards were found together
	pairs, inPairs int // pairs within labels; those of them found
}

func measure(found []Group, group map[string]string) grouped {
	g := grouped{found: len(found)}
	size, met := make(map[string]int), make(map[string]bool)
	for _, name := range group {
		if name != "" {
			size[name]++
		}
	}
	for _, n := range size {
		g.labels++
		g.pairs += n * (n - 1) / 2
	}
	for _, f := range found {
		right := true
		for i, a := range f.IDs {
			for _, b := range f.IDs[i+1:] {
				if group[a] == "" || group[a] != group[b] {
					right = false
					continue
				}
				met[group[a]] = true
				g.inPairs++
			}
		}
		if right {
			g.right++
		}
	}
	g.met = len(met)
	return g
}

// strictLikeness is the smallest bound, in steps of 0.005, with which nothing found in
// testdata/groups/cards.tsv is wrong.
const strictLikeness = 0.17

// wideLikeness is a bound at which 12 of 29 groups in testdata/groups are wrong.
const wideLikeness = 0.12

// TestGroupsOfCards holds what is found on the set that the bounds were chosen
// on, and on the one that nobody looked at meanwhile.
func TestGroupsOfCards(t *testing.T) {
	for _, set := range []struct {
		name, corpus, labels string
		atLeast              float64
		precision            float64
		met                  int
	}{
		{"chosen on", "cards", "groups/cards.tsv", strictLikeness, 0.9, 4},
		{"chosen on, wide", "cards", "groups/cards.tsv", wideLikeness, 0.3, 5},
		{"looked at", "groups/unseen", "", strictLikeness, 0.9, 4},
		{"looked at, wide", "groups/unseen", "", wideLikeness, 0.9, 5},
		{"unseen", "groups/unseen2", "", strictLikeness, 0.9, 6},
		{"unseen, wide", "groups/unseen2", "", wideLikeness, 0.8, 7},
	} {
		lessons, group := labelled(t, set.corpus, set.labels)
		found := FindGroups(lessons, set.atLeast)
		g := measure(found, group)
		t.Logf("%s: %d groups found, %d right; of %d labelled %d met, %d of %d pairs", set.name, g.found, g.right,
			g.labels, g.met, g.inPairs, g.pairs)
		if float64(g.right) < set.precision*float64(g.found) || g.met < set.met {
			t.Errorf("%s: %+v, want a precision of %v and %d labels met\n%v", set.name, g, set.precision,
				set.met, found)
		}
	}
}

// In a store of all three sets, cards of one tool come together that no label joins: a bound that
// finds nothing wrong in each set does in the whole.
func TestGroupsOfAllCards(t *testing.T) {
	var all []Lesson
	group := make(map[string]string)
	for set, labels := range map[string]string{"cards": "groups/cards.tsv", "groups/unseen": "", "groups/unseen2": ""} {
		lessons, of := labelled(t, set, labels)
		for _, l := range lessons {
			if name := of[l.ID]; name != "" {
				group[set+" "+l.ID] = set + " " + name
			}
			l.ID = set + " " + l.ID
			all = append(all, l)
		}
	}
	found := FindGroups(all, strictLikeness)
	if g := measure(found, group); g.right < 10 || g.found > 21 || g.met < 13 {
		t.Errorf("%+v\n%v", g, found)
	}
}

// The order of the lessons does not matter, no lesson is in two groups, and a
// group holds what its contract says.
func TestGroupsProperty(t *testing.T) {
	vocabulary := strings.Fields("retry timeout lock cache rename device temp file port test parallel bind close body header token log print 超时 重试 缓存")
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.Custom(func(rt *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 6).Draw(rt, "words"), " ")
		})
		var lessons []Lesson
		for i := range rapid.IntRange(0, 30).Draw(rt, "lessons") {
			lessons = append(lessons, Lesson{string(rune('a' + i)), text.Draw(rt, "trouble"), text.Draw(rt, "remedy")})
		}
		found := FindGroups(lessons, 0.4)
		again := FindGroups(rapid.Permutation(lessons).Draw(rt, "order"), 0.4)
		if !slices.EqualFunc(found, again, func(a, b Group) bool { return slices.Equal(a.IDs, b.IDs) && a.Likeness == b.Likeness }) {
			rt.Fatalf("in another order: %v, before %v", again, found)
		}
		seen := make(map[string]bool)
		for _, g := range found {
			if len(g.IDs) < 2 || len(g.IDs) > MaxGroup || g.Likeness < 0.4 || !slices.IsSorted(g.IDs) {
				rt.Errorf("not a group: %+v", g)
			}
			for _, id := range g.IDs {
				if seen[id] {
					rt.Errorf("%s is in two groups", id)
				}
				seen[id] = true
			}
		}
	})
}
