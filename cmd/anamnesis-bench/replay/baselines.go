package replay

import (
	"cmp"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// arm is one way of answering. learn is called with a run's questions after
// the run's failures have been asked.
type arm struct {
	name    string
	answer  func(q *Question, r *recorded) []string
	foresee func(r *recorded) []string // at the run's start, from the repository and the request
	learn   func(r *recorded, qs []*Question)
}

// pool is the earlier recorded failures that were repaired.
type pool struct {
	all  []*Question
	said []said // of each one's repair
	rnd  *rand.Rand
}

func (p *pool) learn(_ *recorded, qs []*Question) {
	for _, q := range qs {
		if q.First && q.Repair != nil {
			p.all = append(p.all, q)
			p.said = append(p.said, newSaid(q.Repair.text()))
		}
	}
}

func (p *pool) of(repo string) []*Question {
	var out []*Question
	for _, q := range p.all {
		if q.Repo == repo {
			out = append(out, q)
		}
	}
	return out
}

// shuffled draws repairs of the repository blindly.
func (p *pool) shuffled(repo string) []string {
	same := p.of(repo)
	p.rnd.Shuffle(len(same), func(i, j int) { same[i], same[j] = same[j], same[i] })
	return texts(first(same, maxSuggestions))
}

func texts(qs []*Question) (out []string) {
	for _, q := range qs {
		out = append(out, q.Repair.text())
	}
	return out
}

// oracle picks an earlier repair that the judge takes, if there is one; of a repository, if repo is given.
func (p *pool) oracle(j *Judge, id, repo string) []string {
	for i, s := range p.said {
		if (repo == "" || p.all[i].Repo == repo) && j.hit(id, s) {
			return []string{p.all[i].Repair.text()}
		}
	}
	return nil
}

// wordList is the words that the repairs of the repository hold most often; no
// error is read.
func (p *pool) wordList(repo string, fits func(string) bool) []string {
	n := map[string]int{}
	for _, q := range p.of(repo) {
		for _, w := range words(q.Repair.text()) {
			n[w]++
		}
	}
	ws := make([]string, 0, len(n))
	for w := range n {
		ws = append(ws, w)
	}
	slices.SortFunc(ws, func(a, b string) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b))
	})
	// As many of them as fit.
	fit := sort.Search(len(ws), func(i int) bool { return !fits(strings.Join(ws[:i+1], " ")) })
	if fit == 0 {
		return nil
	}
	return []string{strings.Join(ws[:fit], " ")}
}

// bm25 ranks earlier failures by their words (k1 1.2, b 0.75), as the data
// set's own baseline does.
type bm25 struct {
	*pool
	index map[string][]posting
	len   []int
	total int
}

type posting struct{ doc, n int }

var bm25Word = regexp.MustCompile(`[a-z0-9_]+`)

// queryText is what a failure is found by.
func queryText(q *Question) []string {
	tail := []rune(q.OutTail)
	tail = tail[max(0, len(tail)-300):]
	return bm25Word.FindAllString(strings.ToLower(firstRunes(q.Canon, 300)+" "+q.Sig+q.Sig+" "+string(tail)), -1)
}

func (b *bm25) add(q *Question) {
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

func (b *bm25) learn(_ *recorded, qs []*Question) {
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
