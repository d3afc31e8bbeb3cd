package probe

import (
	_ "embed"
	"math/rand/v2"
	"strings"
	"sync"
)

//go:embed prompt/words.txt
var wordsFile string

// words are the lists of words.txt, by section, read once.
var words = sync.OnceValue(func() map[string][]string {
	lists := make(map[string][]string)
	section := ""
	for line := range strings.Lines(wordsFile) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '[':
			section = strings.Trim(line, "[]")
		default:
			lists[section] = append(lists[section], line)
		}
	}
	return lists
})

func pick(rng *rand.Rand, section string) string {
	list := words()[section]
	return list[rng.IntN(len(list))]
}

// pickSome returns n different words of a section, which must have at least n.
func pickSome(rng *rand.Rand, section string, n int) []string {
	list := words()[section]
	out := make([]string, n)
	for i, j := range rng.Perm(len(list))[:n] {
		out[i] = list[j]
	}
	return out
}

// sentence is one sentence of filler. It holds no digits, no names and
// nothing any question asks about.
func sentence(rng *rand.Rand) string {
	s := pick(rng, "times") + ", " + pick(rng, "people") + " " + pick(rng, "verbs") + " " + pick(rng, "things") + " " + pick(rng, "places")
	if rng.IntN(3) > 0 {
		s += ", " + pick(rng, "tails")
	}
	return s + "."
}

// sentences is how many a paragraph holds.
func sentences(rng *rand.Rand) int { return 4 + rng.IntN(4) }
