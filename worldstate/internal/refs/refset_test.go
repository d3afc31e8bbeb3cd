package refs

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"anamnesis/worldstate/internal/gitfmt"
	"anamnesis/worldstate/worldtest"
)

// TestRefSetAgainstMap: whatever is set, removed, packed and read again, in
// whatever order, a set of refs says what a map says, and packed-refs holds just
// that, sorted.
func TestRefSetAgainstMap(t *testing.T) {
	worldtest.Heavy(t)
	path := filepath.Join(t.TempDir(), "packed-refs")
	rapid.Check(t, func(rt *rapid.T) {
		_ = os.Remove(path)
		s, err := readSet(path)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { s.close() }()
		want := make(map[string]gitfmt.Hash)
		set := func(name string, h gitfmt.Hash) {
			s.set(name, h)
			if want[name] = h; h.IsZero() {
				delete(want, name)
			}
		}
		for n := range rapid.SampledFrom([]int{0, 3, 200, 700}).Draw(rt, "steps before") {
			set(fmt.Sprintf("%st/%d", TaskPrefix, n), refID(n))
		}
		number := rapid.OneOf(rapid.IntRange(0, 3), rapid.IntRange(0, 1500))
		for range rapid.IntRange(1, 60).Draw(rt, "changes") {
			was := s
			switch rapid.IntRange(0, 9).Draw(rt, "instead") {
			case 0:
				s, err = s.pack(path)
			case 1:
				if s, err = s.pack(path); err == nil {
					s.close()
					s, err = readSet(path)
				}
			}
			if err != nil {
				rt.Fatal(err)
			}
			if was != s {
				was.close()
			}
			name := fmt.Sprintf("%st/%d", TaskPrefix, number.Draw(rt, "number"))
			if rapid.IntRange(0, 3).Draw(rt, "odd") == 0 {
				name = rapid.SampledFrom([]string{Latest, TaskPrefix, TaskPrefix + "t/007", TaskPrefix + "u/3", TaskPrefix + "t/1.left", TaskPrefix + "t/1/0", "refs/anamnesis", WorldPrefix + "w", "refs/x/99999999999999999999"}).Draw(rt, "name")
			}
			set(name, gitfmt.Hash{byte(rapid.IntRange(0, 2).Draw(rt, "id"))})
			if got, err := s.Get(name); err != nil || got != want[name] {
				rt.Fatalf("%s is %v, %v, want %v", name, got, err, want[name])
			}
		}
		for n := range 1500 {
			name := fmt.Sprintf("%st/%d", TaskPrefix, n)
			if got, err := s.Get(name); err != nil || got != want[name] {
				rt.Fatalf("%s is %v, %v, want %v", name, got, err, want[name])
			}
		}
		if got, err := s.all(); err != nil || !maps.Equal(got, want) {
			rt.Fatalf("%v, %v, want %v", got, err, want)
		}
		packed, err := s.pack(path)
		if err != nil {
			rt.Fatal(err)
		}
		packed.close()
		var lines []string
		for _, name := range slices.Sorted(maps.Keys(want)) {
			lines = append(lines, want[name].String()+" "+name+"\n")
		}
		data, err := os.ReadFile(path)
		head, body, _ := strings.Cut(string(data), "\n")
		if body != strings.Join(lines, "") || !strings.HasPrefix(head, packedHeader) || err != nil {
			rt.Fatalf("%q, %v, want %q", data, err, lines)
		}
	})
}
