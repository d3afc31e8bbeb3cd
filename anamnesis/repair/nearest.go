package repair

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Where failures of the same kind tell little, an answer drawn from them may be right still,
// and so may the nearest calls of the repository. How often each was is known by kind of
// command: a repair that comes in, and that those before it would not have told for sure, is
// first asked of them.
// The values were chosen on the choose half of the recorded runs and on InterCode; see
// docs/design/replay.md.
const (
	nearCalls   = 3   // that one answer quotes
	nearTrials  = 3   // earlier answers before any is shown
	nearRight   = 0.2 // share of them that would have repaired
	nearPrior   = 0.2 // that share before the first, worth so many trials:
	nearWeight  = 3
	nearBudget  = 200 // tokens of a trial's answer
	nearCommand = 300 // bytes of a command that count

	nearK1 = 1.2 // of BM25
	nearB  = 0.75
)

// nearKey is a kind of command in a repository.
type nearKey struct{ repo, family string }

// record is how often answers of one sort told a repair.
type record map[nearKey]trials

type trials struct{ right, all int }

func (r record) add(key nearKey, right bool) {
	for _, k := range []nearKey{key, {family: key.family}} {
		t := r[k]
		t.all++
		if right {
			t.right++
		}
		r[k] = t
	}
}

// share is the share that told a repair: of the kind of command in the repository, and,
// as long as few were asked there, of that kind in all.
func (r record) share(key nearKey) float64 {
	everywhere := r[nearKey{family: key.family}].smoothed(nearPrior)
	return r[key].smoothed(everywhere)
}

func (t trials) smoothed(prior float64) float64 {
	return (float64(t.right) + prior*nearWeight) / float64(t.all+nearWeight)
}

// terms is what a failed call is compared by.
func terms(command string, sign signature) []string {
	return slices.Concat(Words(firstBytes(command, nearCommand)), sign.words, sign.words)
}

// nearest returns the repository's pairs whose calls share most words with a failed one, by BM25.
func (m *Memory) nearest(repo string, asked []string) []match {
	same := m.byRepo[repo]
	if len(same) == 0 {
		return nil
	}
	df, total := map[string]int{}, 0
	for _, p := range same {
		total += len(p.terms)
		for _, w := range slices.Compact(slices.Sorted(slices.Values(p.terms))) {
			df[w]++
		}
	}
	n := float64(len(same))
	want := slices.Compact(slices.Sorted(slices.Values(asked)))
	var out []match
	for _, p := range same {
		score := 0.0
		norm := nearK1 * (1 - nearB + nearB*float64(len(p.terms))*n/float64(max(1, total)))
		for _, w := range want {
			tf := 0.0
			for _, t := range p.terms {
				if t == w {
					tf++
				}
			}
			if tf > 0 {
				score += math.Log(1+(n-float64(df[w])+.5)/(float64(df[w])+.5)) * tf * (nearK1 + 1) / (tf + norm)
			}
		}
		if score > 0 {
			out = append(out, match{p, score, score})
		}
	}
	slices.Reverse(out)
	slices.SortStableFunc(out, func(a, b match) int { return cmp.Compare(b.fit, a.fit) })
	return first(out, nearCalls)
}

// quote is the repairs of the pairs, one after the other.
func quote(found []match) draft {
	var d draft
	said := map[string]bool{}
	for _, p := range found {
		for _, c := range candidates(p.known) {
			if c.kind == worked && !p.otherFile() && !said[c.text] {
				said[c.text] = true
				d = append(d, c)
			}
		}
	}
	return d
}

// otherFile reports whether a repair called the same program with other files, which
// says nothing about another failure.
func (k *known) otherFile() bool {
	works := mainOf(actions(k.Works))
	in := wordSet(k.Command + " " + strings.Join(works.args, " "))
	for w := range works.words {
		if !in[w] {
			return false
		}
	}
	return true
}

// try asks a repair that comes in of those before it, where these would not answer for sure.
func (m *Memory) try(k *known) {
	shown := wordSet(k.Command + "\n" + k.Failure.Line)
	key, found, of := nearKey{k.Repo, k.family}, m.matches(k.Repo, k.family, k.asked, k.sig), m.near
	c := 0.0
	if len(found) > 0 {
		c, _ = m.confidence(found, shown, nearBudget)
	}
	var d draft
	switch {
	case c >= sureHeld:
		return
	case c >= minHeld:
		d, of = m.draft(found, m.kin(found, k.Repo, k.family), shown), m.doubtful
	default:
		d = quote(m.nearest(k.Repo, k.terms))
	}
	of.add(key, m.repairs(d.said(nearBudget), k, shown))
}

// recallNear answers by the nearest calls.
func (m *Memory) recallNear(key nearKey, found []match, budget int, count func(string) int) (Card, bool) {
	share := m.near.share(key)
	if len(found) == 0 || m.near[key].all < nearTrials || share < nearRight {
		return Card{}, false
	}
	card := newCard(quote(found), found, budget, count)
	card.Confidence, card.Near = share, true
	return card, len(card.Solution) > 0
}
