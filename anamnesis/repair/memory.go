package repair

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"anamnesis/anamnesis/edit"
	"anamnesis/anamnesis/failure"
	"anamnesis/anamnesis/shell"
)

// How a recall matches and when it answers. The values were chosen on the
// choose half of the recorded runs; see docs/design/replay.md.
const (
	looseMatch    = 0.6 // of signatures that differ in names only
	wordMatch     = 0.8 // times the share of words that two signatures have in common
	otherRepo     = 0.3 // a pair of another repository counts for this much
	otherProgram  = 0.8
	minMatch      = 0.3
	unadapted     = 0.5  // of a fit, where the repair says nothing of the names that differ
	kinFit        = 0.15 // a repair of another failure of the same kind of command
	maxKin        = 40
	neighbours    = 25  // pairs that one answer is drawn from
	coversCommand = 0.6 // of the words of the command that worked: an answer that says these would have repaired it
	covers        = 0.4 // of the words of what was done before it
	callShare     = 0.3 // of two failures' likeness: the words of their commands
)

// What is assumed of an answer before it is compared with any pair, worth one
// pair of full fit: nothing known, one pair of the very signature or with the names of the failed call, one that
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
	quoted     = shell.Pattern("'[^']*'|\"[^\"]*\"|`[^`]*`")
	identifier = shell.Pattern(`\b\w*[a-z][A-Z]\w*\b|\b\w*_\w*\b|\b\w+\.\w[\w.]*\b`)
	exception  = shell.Pattern(`^[\w.]*?(\w+(?:Error|Exception|Warning|Configured|NotReady|DoesNotExist))\b`)
)

func newSignature(f failure.Failure) signature {
	s := signature{exact: f.Signature, words: edit.Words(f.Signature)}
	rest, head := f.Signature, ""
	if m := exception().FindStringSubmatch(rest); m != nil {
		head, rest = m[1], rest[len(m[0]):]
	}
	rest = identifier().ReplaceAllString(quoted().ReplaceAllString(rest, "Q"), "ID")
	s.loose = head + " " + strings.ToLower(strings.Join(first(strings.Fields(rest), 9), " "))
	return s
}

// maxScreenBytes is how much of an output's end its reader is taken to know.
const maxScreenBytes = 1500

// screen is the words that a failed call shows already.
func screen(c Call) map[string]bool {
	out := c.Text + c.Stderr
	return edit.WordSet(c.Command + "\n" + out[max(0, len(out)-maxScreenBytes):])
}

// Memory holds the repairs of earlier runs.
type Memory struct {
	pairs    []*known
	byRepo   map[string][]*known
	words    map[string]int // pairs whose repair has the word
	sigWords map[string]int
	record   record // of what answers were worth
}

// NewMemory returns a memory that knows nothing.
func NewMemory() *Memory {
	return &Memory{byRepo: map[string][]*known{}, words: map[string]int{}, sigWords: map[string]int{}, record: record{}}
}

// Len returns how many repairs are known.
func (m *Memory) Len() int { return len(m.pairs) }

// AddTimes adds a repair that further runs, whose names are not known, made as well.
func (m *Memory) AddTimes(p Pair, further int) {
	m.Add(p)
	for i := range min(further, neighbours-1) {
		again := p
		again.Run = fmt.Sprintf("%s again %d", p.Run, i+1)
		m.Add(again)
	}
}

// Add adds a repair, after those before it were asked for it.
func (m *Memory) Add(p Pair) {
	k := newKnown(p)
	if len(k.words) > 0 {
		m.try(k)
	}
	m.learn(k)
}

// Learn adds a repair.
func (m *Memory) Learn(p Pair) { m.learn(newKnown(p)) }

func (m *Memory) learn(k *known) {
	m.pairs = append(m.pairs, k)
	m.byRepo[k.Repo] = append(m.byRepo[k.Repo], k)
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
	fit  float64
	near float64 // fit, by the calls' words too
}

// matches returns the pairs whose failures fit best.
func (m *Memory) matches(a *problem) []match {
	var out []match
	for _, p := range m.pairs {
		fit := wordMatch * m.shared(a.sig.words, p.sig.words)
		switch {
		case a.sig.exact != "" && a.sig.exact == p.sig.exact:
			fit = 1
		case a.sig.loose == p.sig.loose, a.missing && p.missing && p.family == a.family:
			fit = max(fit, looseMatch)
		}
		if p.Repo != a.repo {
			if p.Other && strings.Contains(strings.Fields(p.Works)[0], "/") {
				continue // a program of that repository
			}
			fit *= otherRepo
		}
		if p.family != a.family {
			fit *= otherProgram
		}
		if len(p.words) == 0 && (fit < 1 || p.Repo != a.repo) {
			continue // no word of it was not on the screen; a number may be
		}
		if fit >= minMatch {
			out = append(out, match{p, fit, fit * (1 - callShare + callShare*m.shared(a.asked, p.asked))})
		}
	}
	if own := slices.DeleteFunc(slices.Clone(out), func(p match) bool { return p.Repo != a.repo }); len(own) > 0 {
		out = own
	}
	slices.Reverse(out) // of equal fit, the latest
	slices.SortStableFunc(out, func(a, b match) int { return cmp.Compare(b.near, a.near) })
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
	a := newProblem(repo, failed.Command, f)
	for _, of := range m.answers(&a, failed, f.Line, screen(failed), budget) {
		if !m.shows(&a, &of) {
			continue
		}
		card := newCard(of.draft, of.found, budget, count)
		card.Confidence, card.Held, card.Of, card.Near = of.sure, of.held, len(of.found), of.like == nearby
		if len(card.Solution) > 0 {
			return card, true
		}
	}
	return Card{}, false
}

// kin lists the latest repairs of the same kind of command in the repository whose command
// had other arguments than the one that failed.
func (m *Memory) kin(found []match, a *problem) (out []match) {
	for _, p := range slices.Backward(m.byRepo[a.repo]) {
		if p.family == a.family && !p.Other && len(out) < maxKin && !slices.ContainsFunc(found, func(f match) bool { return f.Run == p.Run && f.Failed == p.Failed }) && !p.otherFile() {
			out = append(out, match{p, kinFit, kinFit})
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
		if len(others) > 0 && m.repairs(m.draft(others, nil, shown).said(budget), p.known, shown) {
			right += p.fit
			held++
		}
	}
	prior := priorHeld
	adapted := slices.ContainsFunc(found[0].lines, func(l line) bool { return l.adapted })
	exact := found[0].fit == 1 || found[0].fit == otherRepo // of another repository no other match is kept
	if len(found) == 1 && (exact || adapted) {
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
// an earlier failure: most words of the command that worked, or many of what was done
// before it.
func (m *Memory) repairs(said map[string]bool, p *known, shown map[string]bool) bool {
	var got, all [2]float64
	var n [2]int
	seen := map[string]bool{}
	for _, l := range p.lines {
		for _, w := range l.words {
			if shown[w] || seen[w] || !slices.Contains(p.words, w) {
				continue
			}
			seen[w] = true
			of := 1
			if l.kind == worked {
				of = 0
			}
			all[of] += m.weight(m.words, w)
			if said[w] {
				got[of] += m.weight(m.words, w)
				n[of]++
			}
		}
	}
	return all[0] > 0 && got[0] >= coversCommand*all[0] || all[1] > 0 && got[1] >= covers*all[1] && (n[1] > 1 || got[1] == all[1])
}

// Warn returns the card about a program that a command of this repository starts and
// that earlier runs found missing there, where they called it another way. believed
// says which cards take part.
func (m *Memory) Warn(repo, command string, budget int, count func(string) int, believed func(*Pair) bool) (Card, bool) {
	family := mainOf(actions(command)).family()
	var found []match
	for _, p := range slices.Backward(m.byRepo[repo]) {
		if p.Other && p.family == family && missing().MatchString(p.Failure.Line) &&
			slices.Contains(edit.Words(p.Failure.Line), strings.ToLower(family)) && believed(&p.Pair) && len(found) < neighbours {
			found = append(found, match{p, 1, 1})
		}
	}
	if len(found) == 0 {
		return Card{}, false
	}
	found = inTermsOf(found, Call{Output: failure.Output{Command: command}}, "", signature{})
	card := newCard(m.draft(found, nil, edit.WordSet(command)), found, budget, count)
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
		groups[key] = append(groups[key], match{p, 1, 1})
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
			break
		}
		slices.Reverse(found)
		found = first(found, neighbours)
		card := newCard(m.draft(found, nil, nil), found, budget/maxCards, count)
		card.Held, card.Of = len(found), len(found)
		if len(card.Solution) > 0 {
			out = append(out, card)
		}
	}
	return out
}
