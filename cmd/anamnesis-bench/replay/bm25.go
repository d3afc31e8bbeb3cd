package replay

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
)

// bm25 ranks earlier failures by their words (k1 1.2, b 0.75), as the data
// set's own baseline does.
type bm25 struct {
	all   []*Question // the earlier recorded failures that were repaired
	index map[string][]posting
	len   []int
	total int
}

func newBM25() *bm25 { return &bm25{index: map[string][]posting{}} }

type posting struct{ doc, n int }

var bm25Word = regexp.MustCompile(`[a-z0-9_]+`)

// queryText is what a failure is found by.
func queryText(q *Question) []string {
	tail := []rune(q.OutTail)
	tail = tail[max(0, len(tail)-300):]
	return bm25Word.FindAllString(strings.ToLower(firstRunes(q.Canon, 300)+" "+q.Sig+q.Sig+" "+string(tail)), -1)
}

func (b *bm25) add(q *Question) {
	b.all = append(b.all, q)
	text := queryText(q)
	n := map[string]int{}
	for _, w := range text {
		n[w]++
	}
	for w, c := range n {
		b.index[w] = append(b.index[w], posting{len(b.len), c})
	}
	b.len = append(b.len, len(text))
	b.total += len(text)
}

func (b *bm25) learn(qs []*Question) {
	for _, q := range qs {
		if q.First && q.Repair != nil {
			b.add(q)
		}
	}
}

// top returns the best three repairs of the same repository.
func (b *bm25) top(repo string, query []string) []string {
	n := float64(len(b.len))
	score := make([]float64, len(b.len))
	for w := range set(query) {
		p := b.index[w]
		if len(p) == 0 || float64(len(p)) > 0.6*n+5 {
			continue
		}
		idf := math.Log(1 + (n-float64(len(p))+.5)/(float64(len(p))+.5))
		for _, d := range p {
			length := float64(b.len[d.doc]) * n / float64(b.total)
			score[d.doc] += idf * float64(d.n) * 2.2 / (float64(d.n) + 1.2*(.25+.75*length))
		}
	}
	var order []int
	for i, s := range score {
		if s > 0 && b.all[i].Repo == repo {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(score[j], score[i]) })
	var out []string
	seen := map[string]bool{}
	for _, i := range order {
		text := b.all[i].Repair.text()
		if key := firstRunes(normal(text), 400); !seen[key] && len(out) < maxSuggestions {
			seen[key] = true
			out = append(out, text)
		}
	}
	return out
}
