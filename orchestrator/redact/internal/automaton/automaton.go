// Package automaton finds many words in one pass over a text.
package automaton

// Automaton finds words as Aho and Corasick described it in 1975. It compares ASCII
// letters without case. It is a complete table over the classes of bytes that the words
// distinguish: one load a byte, and no failure links to follow.
type Automaton struct {
	class  [256]uint8
	width  int32   // number of classes
	next   []int32 // state+class → state; a state is its row's offset
	hits   int32   // states from here on end a word
	ends   [][]int // by row, from hits on: the words that end there, longest first
	depths []int   // by row: the length of the longest prefix of a word
}

// trie is the input of an automaton.
type trie struct {
	child []map[uint8]int
	fail  []int
	depth []int
	words [][]int
}

// New makes an automaton. Words are identified by their index.
func New(words []string) *Automaton {
	a := &Automaton{}
	a.classify(words)
	t := a.plant(words)
	order := t.link()
	// Rows that end a word come last, so that one comparison finds them.
	row := make([]int32, len(t.child))
	at := int32(0)
	for _, ending := range []bool{false, true} {
		if ending {
			a.hits = at * a.width
		}
		for _, n := range order {
			if (len(t.words[n]) > 0) == ending {
				row[n] = at
				at++
			}
		}
	}
	a.next = make([]int32, int(at)*int(a.width))
	a.depths = make([]int, at)
	a.ends = make([][]int, at-a.hits/a.width)
	for _, n := range order { // parents and failures before their children
		base := row[n] * a.width
		a.depths[row[n]] = t.depth[n]
		if base >= a.hits {
			a.ends[row[n]-a.hits/a.width] = t.words[n]
		}
		for c := range uint8(a.width) {
			to, ok := t.child[n][c]
			switch {
			case ok:
				a.next[base+int32(c)] = row[to] * a.width
			case n != 0:
				a.next[base+int32(c)] = a.next[row[t.fail[n]]*a.width+int32(c)]
			}
		}
	}
	return a
}

// Each calls visit for each word that ends in s, with the end's offset; of words with the same
// end the longest comes first. It returns the length of the longest prefix of a word that ends
// s.
func (a *Automaton) Each(s string, visit func(word, end int)) (partial int) {
	class, next, hits := &a.class, a.next, a.hits
	state := int32(0)
	for i := 0; i < len(s); i++ {
		state = next[state+int32(class[s[i]])]
		if state < hits {
			continue
		}
		for _, word := range a.ends[(state-hits)/a.width] {
			visit(word, i+1)
		}
	}
	return a.depths[state/a.width]
}

// classify numbers the bytes that occur in words; all others are class 0.
func (a *Automaton) classify(words []string) {
	a.width = 1
	for _, w := range words {
		for i := range len(w) {
			b := lower(w[i])
			if a.class[b] != 0 || a.width > 255 {
				continue
			}
			a.class[b] = uint8(a.width)
			a.width++
		}
	}
	for b := byte('A'); b <= 'Z'; b++ {
		a.class[b] = a.class[lower(b)]
	}
}

func (a *Automaton) plant(words []string) *trie {
	t := &trie{}
	add := func(depth int) int {
		t.child = append(t.child, map[uint8]int{})
		t.fail = append(t.fail, 0)
		t.depth = append(t.depth, depth)
		t.words = append(t.words, nil)
		return len(t.child) - 1
	}
	add(0)
	for id, w := range words {
		n := 0
		for i := range len(w) {
			c := a.class[w[i]]
			to, ok := t.child[n][c]
			if !ok {
				to = add(i + 1)
				t.child[n][c] = to
			}
			n = to
		}
		t.words[n] = append(t.words[n], id)
	}
	return t
}

// link sets the failure links, adds to each node the words that end there by
// a suffix, and returns the nodes breadth first.
func (t *trie) link() []int {
	order := []int{0}
	for i := 0; i < len(order); i++ {
		n := order[i]
		for c, to := range t.child[n] {
			order = append(order, to)
			if n == 0 {
				continue
			}
			f := t.fail[n]
			for {
				if via, ok := t.child[f][c]; ok {
					t.fail[to] = via
					break
				}
				if f == 0 {
					break
				}
				f = t.fail[f]
			}
		}
		if n != 0 {
			t.words[n] = append(t.words[n], t.words[t.fail[n]]...)
		}
	}
	return order
}

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}
