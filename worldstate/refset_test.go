package worldstate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestRefSetAgainstMap: whatever is set and removed, in whatever order, a set
// of refs says what a map says.
func TestRefSetAgainstMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var s refSet
		want := make(map[string]hash)
		number := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(refChunk-2, refChunk+2), rapid.IntRange(0, 5*refChunk))
		for range rapid.IntRange(1, 60).Draw(rt, "changes") {
			name := fmt.Sprintf("%st/%d", taskRefs, number.Draw(rt, "number"))
			if rapid.IntRange(0, 3).Draw(rt, "odd") == 0 {
				name = rapid.SampledFrom([]string{latestRef, taskRefs + "t/007", taskRefs + "u/3", taskRefs + "t/1.left", taskRefs + "t/1/0", taskRefs + "t/-1", "refs/x/99999999999999999999"}).Draw(rt, "name")
			}
			h := hash{byte(rapid.IntRange(0, 2).Draw(rt, "id"))}
			s.set(name, h)
			if want[name] = h; h.isZero() {
				delete(want, name)
			}
			if s.get(name) != h || s.n != len(want) {
				rt.Fatalf("%s is %v of %d, want %v of %d", name, s.get(name), s.n, h, len(want))
			}
		}
		if got := maps.Collect(s.all()); !maps.Equal(got, want) {
			rt.Fatalf("%v, want %v", got, want)
		}
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(want)) {
			lines = append(lines, want[name].String()+" "+name+"\n")
		}
		if got := string(s.appendSorted(nil)); got != strings.Join(lines, "") {
			rt.Fatalf("%q, want %q", got, lines)
		}
		for name, h := range want {
			if s.get(name) != h {
				rt.Fatalf("%s is %v, want %v", name, s.get(name), h)
			}
		}
	})
}
