package repair

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Where no failure of the same kind tells enough, the nearest calls of the repository may
// still tell. How often they did is known by kind of command: each repair that comes in,
// and that failures of its kind would not have told, is first asked of those before it.
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

// trials is how often the nearest calls told a repair.
type trials struct{ right, all int }

func (t trials) share() float64 {
	return (float64(t.right) + nearPrior*nearWeight) / float64(t.all+nearWeight)
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
			out = append(out, match{known: p, fit: score})
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
		for _, l := range p.lines {
			if l.kind == worked && !p.otherFile() && !said[l.text] && len(d.lines) < maxCardLines {
				said[l.text] = true
				d.lines, d.from = append(d.lines, l), append(d.from, p.known)
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

// try asks a repair that comes in of those before it.
func (m *Memory) try(k *known) {
	shown := wordSet(k.Command + "\n" + k.Failure.Line)
	if found := m.matches(k.Repo, k.family, k.sig); len(found) > 0 {
		if c, _ := m.confidence(found, shown, nearBudget); c >= minHeld {
			return
		}
	}
	key := nearKey{k.Repo, k.family}
	t := m.near[key]
	t.all++
	if found := m.nearest(k.Repo, k.terms); len(found) > 0 && m.repairs(quote(found).said(nearBudget), k, shown) {
		t.right++
	}
	m.near[key] = t
}

// recallNear answers by the nearest calls.
func (m *Memory) recallNear(key nearKey, asked []string, change func(*known, line) (string, bool), budget int, count func(string) int) (Card, bool) {
	t := m.near[key]
	if t.all < nearTrials || t.share() < nearRight {
		return Card{}, false
	}
	found := m.nearest(key.repo, asked)
	if len(found) == 0 {
		return Card{}, false
	}
	card := newCard(quote(found), found, change, budget, count)
	card.Confidence, card.Near = t.share(), true
	return card, len(card.Solution) > 0
}
