package repair

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
)

// How a recall matches and when it answers. The values were chosen on recorded
// runs; docs/replay.md names which.
const (
	looseMatch   = 0.6 // of signatures that differ in names only
	wordMatch    = 0.8 // times the share of words two signatures have in common
	otherRepo    = 0.5 // a pair of another repository counts for this much
	otherProgram = 0.8
	minMatch     = 0.3
	neighbours   = 12 // pairs that one answer is drawn from
	doubt        = 1  // failures that the answer would not have repaired, assumed beside those compared
	minHeld      = 0.3
	covers       = 0.45 // of a pair's words: an answer that says these would have repaired it
)

// signature is what failures are compared by.
type signature struct {
	exact, loose string
	words        map[string]bool
}

var (
	quoted     = regexp.MustCompile("'[^']*'|\"[^\"]*\"|`[^`]*`")
	identifier = regexp.MustCompile(`\b\w*[a-z][A-Z]\w*\b|\b\w*_\w*\b|\b\w+\.\w[\w.]*\b`)
	exception  = regexp.MustCompile(`^[\w.]*?(\w+(?:Error|Exception|Warning|Configured|NotReady|DoesNotExist))\b`)
)

func newSignature(f failure.Failure) signature {
	s := signature{exact: f.Signature, words: map[string]bool{}}
	rest, head := f.Signature, ""
	if m := exception.FindStringSubmatch(rest); m != nil {
		head, rest = m[1], rest[len(m[0]):]
	}
	rest = identifier.ReplaceAllString(quoted.ReplaceAllString(rest, "Q"), "ID")
	s.loose = head + " " + strings.ToLower(strings.Join(first(strings.Fields(rest), 9), " "))
	for _, w := range Words(f.Signature) {
		s.words[w] = true
	}
	return s
}

var word = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*|\B--?[A-Za-z][\w-]*`)

// Words returns the distinct identifiers and options of a text, in lower case
// and in order.
func Words(s string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range word.FindAllString(s, -1) {
		w = strings.ToLower(w)
		if len(w) > 1 && !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// maxScreenBytes is how much of an output's end its reader is taken to know.
const maxScreenBytes = 1500

// screen is the words that a failed call shows already.
func screen(c Call) map[string]bool {
	m := map[string]bool{}
	out := c.Text + c.Stderr
	for _, w := range Words(c.Command + "\n" + out[max(0, len(out)-maxScreenBytes):]) {
		m[w] = true
	}
	return m
}

// Memory holds the repairs of the runs it learned from.
type Memory struct {
	pairs    []*Pair
	words    map[string]int // pairs whose repair has the word
	sigWords map[string]int
}

// NewMemory returns a memory that knows nothing.
func NewMemory() *Memory {
	return &Memory{words: map[string]int{}, sigWords: map[string]int{}}
}

// Len returns how many repairs are known.
func (m *Memory) Len() int { return len(m.pairs) }

// Learn adds the repairs of a finished run.
func (m *Memory) Learn(r Run) {
	for _, p := range Pairs(r) {
		if len(p.words) == 0 {
			continue // all of it was on the screen
		}
		m.pairs = append(m.pairs, &p)
		for _, w := range p.words {
			m.words[w]++
		}
		for w := range p.sig.words {
			m.sigWords[w]++
		}
	}
}

func (m *Memory) weight(df map[string]int, w string) float64 {
	return math.Log(1 + float64(1+len(m.pairs))/float64(1+df[w]))
}

// match is an earlier pair and how well its failure fits, up to 1.
type match struct {
	*Pair
	fit float64
}

// matches returns the pairs whose failures fit best.
func (m *Memory) matches(repo, family string, s signature) []match {
	var out []match
	for _, p := range m.pairs {
		fit := wordMatch * m.shared(s.words, p.sig.words)
		switch {
		case s.exact != "" && s.exact == p.sig.exact:
			fit = 1
		case s.loose == p.sig.loose:
			fit = max(fit, looseMatch)
		}
		if p.Repo != repo {
			fit *= otherRepo
		}
		if p.family != family {
			fit *= otherProgram
		}
		if fit >= minMatch {
			out = append(out, match{p, fit})
		}
	}
	slices.Reverse(out) // of equal fit, the latest
	slices.SortStableFunc(out, func(a, b match) int { return cmp.Compare(b.fit, a.fit) })
	return first(out, neighbours)
}

// shared is the weighted share of words that two signatures have in common.
func (m *Memory) shared(a, b map[string]bool) float64 {
	var both, all float64
	for w := range a {
		all += m.weight(m.sigWords, w)
		if b[w] {
			both += m.weight(m.sigWords, w)
		}
	}
	for w := range b {
		if !a[w] {
			all += m.weight(m.sigWords, w)
		}
	}
	if all == 0 {
		return 0
	}
	return both / all
}

// Recall returns the card that fits a failed call, or false where what is known
// would more likely mislead. budget is the card's length as count measures it.
func (m *Memory) Recall(repo string, failed Call, budget int, count func(string) int) (Card, bool) {
	f, _ := failure.Read(failed.Output)
	found := m.matches(repo, mainOf(actions(failed.Command)).program, newSignature(f))
	if len(found) == 0 {
		return Card{}, false
	}
	d := m.draft(found, screen(failed))
	card := newCard(f, failed.Command, found, d, budget, count)
	held, all := 0.0, float64(doubt)
	said := map[string]bool{}
	for _, w := range Words(strings.Join(card.Solution, "\n")) {
		said[w] = true
	}
	for _, p := range found {
		all += p.fit
		if m.repairs(said, p.Pair, d.shown) {
			held += p.fit
			card.Held++
		}
	}
	card.Of, card.Confidence = len(found), held/all
	return card, card.Confidence >= minHeld && len(card.Solution) > 0
}

// repairs reports whether an answer that says these words would have repaired
// an earlier failure.
func (m *Memory) repairs(said map[string]bool, p *Pair, shown map[string]bool) bool {
	var got, all float64
	for _, w := range p.words {
		if shown[w] {
			continue
		}
		all += m.weight(m.words, w)
		if said[w] {
			got += m.weight(m.words, w)
		}
	}
	return all > 0 && got >= covers*all
}

// draft is the lines that the pairs' repairs have in common, best first.
type draft struct {
	lines []string
	from  []*Pair // of each line
	shown map[string]bool
}

// draft picks lines one after another, each for the words that most of the
// pairs' repairs hold and no line before it said.
func (m *Memory) draft(found []match, shown map[string]bool) draft {
	d := draft{shown: shown}
	var all float64
	share := map[string]float64{}
	for _, p := range found {
		all += p.fit
		for _, w := range p.words {
			if !shown[w] {
				share[w] += p.fit
			}
		}
	}
	type candidate struct {
		text string
		from *Pair
		ws   []string
	}
	var rest []candidate
	seen := map[string]bool{}
	for _, p := range found {
		for _, l := range p.lines {
			l = strings.Join(strings.Fields(l), " ")
			if len(l) > maxLineBytes {
				l = firstBytes(l, maxLineBytes)
			}
			if !seen[l] {
				seen[l] = true
				rest = append(rest, candidate{l, p.Pair, Words(l)})
			}
		}
	}
	gain := func(c candidate) (g float64) {
		for _, w := range c.ws {
			g += share[w] / all * m.weight(m.words, w)
		}
		return g
	}
	for len(rest) > 0 && len(d.lines) < maxCardLines {
		best, bestRate := 0, 0.0
		for i, c := range rest {
			if rate := gain(c) / (4 + float64(len(c.text))/4); rate > bestRate {
				best, bestRate = i, rate
			}
		}
		if bestRate == 0 {
			break
		}
		c := rest[best]
		rest = slices.Delete(rest, best, best+1)
		d.lines, d.from = append(d.lines, c.text), append(d.from, c.from)
		for _, w := range c.ws {
			share[w] = 0
		}
	}
	return d
}

// Foresee returns cards for the failures that runs of this repository met most,
// before any is met.
func (m *Memory) Foresee(repo, request string, budget int, count func(string) int) []Card {
	return nil
}
