package repair

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"anamnesis/anamnesis/failure"
)

// How a recall matches and when it answers. The values were chosen on the
// choose half of the recorded runs; see docs/design/replay.md.
const (
	looseMatch   = 0.6 // of signatures that differ in names only
	wordMatch    = 0.8 // times the share of words that two signatures have in common
	otherRepo    = 0.3 // a pair of another repository counts for this much
	otherProgram = 0.8
	minMatch     = 0.3
	neighbours   = 25   // pairs that one answer is drawn from
	backOff      = 0.15 // the fit of a repair of another failure of the same kind of command
	maxBackOff   = 60   // such repairs, the latest
	covers       = 0.45 // of a pair's words: an answer that says these would have repaired it
	minHeld      = 0.15 // share of the pairs that the answer would have repaired
	lineCost     = 8    // tokens that a line costs beside its own
	leastGain    = 0.02 // of the best line's: a line that adds less is left out
)

// What is assumed of an answer before it is compared with any pair, worth one
// pair of full fit: nothing known, one pair of the very signature, one that
// is another way of calling, and one that a user reviewed.
const (
	priorHeld   = 0.3
	singleHeld  = 0.6
	callHeld    = 0.8
	trustedHeld = 1
)

// signature is what failures are compared by.
type signature struct {
	exact, loose string
	words        []string
}

var (
	quoted     = lazy("'[^']*'|\"[^\"]*\"|`[^`]*`")
	identifier = lazy(`\b\w*[a-z][A-Z]\w*\b|\b\w*_\w*\b|\b\w+\.\w[\w.]*\b`)
	exception  = lazy(`^[\w.]*?(\w+(?:Error|Exception|Warning|Configured|NotReady|DoesNotExist))\b`)
)

func newSignature(f failure.Failure) signature {
	s := signature{exact: f.Signature, words: Words(f.Signature)}
	rest, head := f.Signature, ""
	if m := exception().FindStringSubmatch(rest); m != nil {
		head, rest = m[1], rest[len(m[0]):]
	}
	rest = identifier().ReplaceAllString(quoted().ReplaceAllString(rest, "Q"), "ID")
	s.loose = head + " " + strings.ToLower(strings.Join(first(strings.Fields(rest), 9), " "))
	return s
}

// functionWords say nothing about a repair; comments are full of them. The list has no
// other source: it was written here for comments in English and has no Chinese words.
var functionWords = nameSet("the an of to in is it we be if by as at on or and but not this that with for from so let can will just need needs since there then than are was use using used don doesn ll here have has had its also any some all into like more now one only other our should which would you your try expect however because actually")

var word = lazy(`[A-Za-z_][A-Za-z0-9_]*|\B--?[A-Za-z][\w-]*`)

// Words returns the distinct identifiers and options of a text, in lower case
// and in order.
func Words(s string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range word().FindAllString(s, -1) {
		w = strings.ToLower(w)
		if len(w) > 1 && !seen[w] && !functionWords[w] {
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
	out := c.Text + c.Stderr
	return wordSet(c.Command + "\n" + out[max(0, len(out)-maxScreenBytes):])
}

func wordSet(text string) map[string]bool {
	m := map[string]bool{}
	for _, w := range Words(text) {
		m[w] = true
	}
	return m
}

// Memory holds the repairs of earlier runs.
type Memory struct {
	pairs    []*known
	byRepo   map[string][]*known
	words    map[string]int // pairs whose repair has the word
	sigWords map[string]int
	near     map[nearKey]trials
}

// NewMemory returns a memory that knows nothing.
func NewMemory() *Memory {
	return &Memory{byRepo: map[string][]*known{}, words: map[string]int{}, sigWords: map[string]int{}, near: map[nearKey]trials{}}
}

// Len returns how many repairs are known.
func (m *Memory) Len() int { return len(m.pairs) }

// Add adds a repair.
func (m *Memory) Add(p Pair) {
	k := newKnown(p)
	if len(k.words) == 0 {
		return // all of it was on the screen
	}
	m.try(k)
	m.pairs = append(m.pairs, k)
	m.byRepo[p.Repo] = append(m.byRepo[p.Repo], k)
	for _, w := range k.words {
		m.words[w]++
	}
	for _, w := range k.sig.words {
		m.sigWords[w]++
	}
}

func (m *Memory) weight(df map[string]int, w string) float64 {
	return math.Log(1 + float64(1+len(m.pairs))/float64(1+df[w]))
}

// match is an earlier pair and how well its failure fits, up to 1.
type match struct {
	*known
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
			if p.Other && strings.Contains(strings.Fields(p.Works)[0], "/") {
				continue // a program of that repository
			}
			fit *= otherRepo
		}
		if p.family != family {
			fit *= otherProgram
		}
		if fit >= minMatch {
			out = append(out, match{p, fit})
		}
	}
	if own := slices.DeleteFunc(slices.Clone(out), func(p match) bool { return p.Repo != repo }); len(own) > 0 {
		out = own
	}
	slices.Reverse(out) // of equal fit, the latest
	slices.SortStableFunc(out, func(a, b match) int { return cmp.Compare(b.fit, a.fit) })
	return first(out, neighbours)
}

// shared is the weighted share of words that two signatures have in common.
func (m *Memory) shared(a, b []string) float64 {
	var both, all float64
	for _, w := range a {
		all += m.weight(m.sigWords, w)
		if slices.Contains(b, w) {
			both += m.weight(m.sigWords, w)
		}
	}
	for _, w := range b {
		if !slices.Contains(a, w) {
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
	family, s, shown := mainOf(actions(failed.Command)).family(), newSignature(f), screen(failed)
	change := adapt(f, failed.Command, s)
	if card, ok := m.recallSame(repo, family, s, shown, change, budget, count); ok {
		return card, true
	}
	return m.recallNear(nearKey{repo, family}, terms(failed.Command, s), change, budget, count)
}

// recallSame answers by the repairs of failures of the same kind.
func (m *Memory) recallSame(repo, family string, s signature, shown map[string]bool, change func(*known, line) (string, bool), budget int, count func(string) int) (Card, bool) {
	found := m.matches(repo, family, s)
	if len(found) == 0 {
		return Card{}, false
	}
	confidence, held := m.confidence(found, shown, budget)
	if confidence < minHeld {
		return Card{}, false
	}
	card := newCard(m.draft(m.withFamily(found, repo, family), shown), found, change, budget, count)
	card.Confidence, card.Held, card.Of = confidence, held, len(found)
	return card, len(card.Solution) > 0
}

// withFamily adds the repairs of other failures of the same kind of command in the
// repository.
func (m *Memory) withFamily(found []match, repo, family string) []match {
	out := slices.Clone(found)
	n := 0
	for _, p := range slices.Backward(m.byRepo[repo]) {
		if p.family != family || n == maxBackOff {
			continue
		}
		n++
		if !slices.ContainsFunc(found, func(f match) bool { return f.known == p }) {
			out = append(out, match{known: p, fit: backOff})
		}
	}
	return out
}

// confidence estimates how likely an answer drawn from these pairs is right:
// each pair is answered by a draft from the others.
func (m *Memory) confidence(found []match, shown map[string]bool, budget int) (c float64, held int) {
	var right, all float64
	for i, p := range found {
		others := slices.Concat(found[:i], found[i+1:])
		all += p.fit
		if len(others) > 0 && m.repairs(m.draft(others, shown).said(budget), p.known, shown) {
			right += p.fit
			held++
		}
	}
	prior := priorHeld
	if len(found) == 1 && found[0].fit == 1 {
		switch {
		case found[0].Trusted:
			prior = trustedHeld
		case found[0].Other:
			prior = callHeld
		default:
			prior = singleHeld
		}
	}
	return (right + prior) / (all + 1), held
}

// repairs reports whether an answer that says these words would have repaired
// an earlier failure.
func (m *Memory) repairs(said map[string]bool, p *known, shown map[string]bool) bool {
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
	lines []line
	from  []*known // of each line
}

// bytesPerToken is about what a token of such lines is long.
const bytesPerToken = 3.5

// said is the words of the lines that a budget of tokens holds.
func (d draft) said(budget int) map[string]bool {
	said := map[string]bool{}
	left := float64(budget) * bytesPerToken * 0.7 // a card's frame takes the rest
	for _, l := range d.lines {
		if left -= float64(len(l.text)); left < 0 {
			break
		}
		for _, w := range l.words {
			said[w] = true
		}
	}
	return said
}

// draft picks lines one after another, each for the words that most of the pairs'
// repairs hold and no line before it said.
func (m *Memory) draft(found []match, shown map[string]bool) draft {
	var all float64
	share := map[string]float64{} // of the pairs, by fit, whose repair holds a word
	for _, p := range found {
		all += p.fit
		for _, w := range p.words {
			if !shown[w] {
				share[w] += p.fit
			}
		}
	}
	for w := range share {
		share[w] /= all
	}
	var rest []candidate
	seen := map[string]bool{}
	for _, p := range found {
		for i, l := range p.lines {
			if key := strings.TrimSpace(l.text); !seen[key] {
				seen[key] = true
				rest = append(rest, candidate{l, p.known, i})
			}
		}
	}
	rate := func(c candidate) (g float64) {
		for _, w := range c.words {
			if s := share[w]; s > 0 {
				g += s * m.weight(m.words, w)
			}
		}
		return g / (lineCost + float64(len(c.text))/4)
	}
	var lines []candidate
	top := 0.0
	for len(rest) > 0 && len(lines) < maxCardLines {
		best, bestRate := -1, 0.0
		for i, c := range rest {
			if r := rate(c); r > bestRate {
				best, bestRate = i, r
			}
		}
		top = max(top, bestRate)
		if best < 0 || bestRate < leastGain*top {
			break
		}
		c := rest[best]
		rest = slices.Delete(rest, best, best+1)
		lines = append(lines, c)
		for _, w := range c.words {
			share[w] = 0
		}
	}
	return newDraft(lines)
}

// candidate is the line of a repair, and its place there.
type candidate struct {
	line
	from *known
	at   int
}

// newDraft puts the lines of a repair in their order there, the best repair first.
func newDraft(lines []candidate) draft {
	var order []*known
	for _, c := range lines {
		if !slices.Contains(order, c.from) {
			order = append(order, c.from)
		}
	}
	slices.SortStableFunc(lines, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.from), slices.Index(order, b.from)), cmp.Compare(a.at, b.at))
	})
	var d draft
	for _, c := range lines {
		d.lines, d.from = append(d.lines, c.line), append(d.from, c.from)
	}
	return d
}

// Warn returns the card about a program that a command of this repository starts and
// that earlier runs found missing there, where they called it another way. believed
// says which cards take part.
func (m *Memory) Warn(repo, command string, budget int, count func(string) int, believed func(*Pair) bool) (Card, bool) {
	family := mainOf(actions(command)).family()
	var found []match
	for _, p := range slices.Backward(m.byRepo[repo]) {
		if p.Other && p.family == family && missing().MatchString(p.Failure.Line) &&
			slices.Contains(Words(p.Failure.Line), strings.ToLower(family)) && believed(&p.Pair) && len(found) < neighbours {
			found = append(found, match{known: p, fit: 1})
		}
	}
	if len(found) == 0 {
		return Card{}, false
	}
	card := newCard(m.draft(found, wordSet(command)), found, adapt(failure.Failure{}, command, signature{}), budget, count)
	card.Held, card.Of = len(found), len(found)
	return card, len(card.Solution) > 0
}

// Foresee returns cards for the failures that most runs of this repository met,
// before any is met.
func (m *Memory) Foresee(repo string, budget int, count func(string) int) []Card {
	groups := map[string][]match{}
	runs := map[string]map[string]bool{}
	for _, p := range m.byRepo[repo] {
		key := p.sig.loose
		if p.Other {
			key = strings.Fields(p.Works)[0]
		}
		groups[key] = append(groups[key], match{known: p, fit: 1})
		if runs[key] == nil {
			runs[key] = map[string]bool{}
		}
		runs[key][p.Run] = true
	}
	keys := slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(runs[b]), len(runs[a])), cmp.Compare(a, b))
	})
	var out []Card
	for _, k := range first(keys, maxCards) {
		found := groups[k]
		if len(runs[k]) < 2 {
			break // met once
		}
		slices.Reverse(found)
		found = first(found, neighbours)
		card := newCard(m.draft(found, nil), found, adapt(failure.Failure{}, "", signature{}), budget/maxCards, count)
		card.Held, card.Of = len(found), len(found)
		if len(card.Solution) > 0 {
			out = append(out, card)
		}
	}
	return out
}
