package repair

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"anamnesis/anamnesis/shell"
)

// Limits of an answer's lines. The values were chosen on the choose half of the recorded
// runs; see docs/design/replay.md.
const (
	maxLines  = 12
	maxAdded  = 4    // lines from repairs other than the lead
	ownShare  = 0.5  // least share of a line's new words, by weight, that repairs of two tasks hold
	leastGain = 0.03 // of a line that is picked
	lineCost  = 8    // tokens of overhead for each line
	tokenSize = 3.5  // mean bytes of a token
)

// candidate is a line of a repair with its position there.
type candidate struct {
	line
	from *known
	at   int
}

// draft holds the lines of an answer, the most important first. Most come from one repair,
// the lead; the other repairs add lines whose words several of them share.
type draft []candidate

// shares describes the words of repairs that the failed call does not show.
type shares struct {
	of    map[string]float64         // the share of the repairs, weighted by fit, that hold the word
	tasks map[string]map[string]bool // the tasks whose repairs hold it
}

func newShares(found []match, shown map[string]bool) shares {
	s := shares{map[string]float64{}, map[string]map[string]bool{}}
	var all float64
	for _, p := range found {
		all += p.near
		for _, w := range p.words {
			if shown[w] {
				continue
			}
			if s.tasks[w] == nil {
				s.tasks[w] = map[string]bool{}
			}
			s.of[w] += p.near
			s.tasks[w][p.Run] = true
		}
	}
	for w := range s.of {
		s.of[w] /= all
	}
	return s
}

// lead returns the pair whose repair is most like the others': a cosine of the words it holds
// and their shares, times its fit.
func (m *Memory) lead(found []match, s shares) *known {
	var all float64
	for w, share := range s.of {
		all += share * m.weight(m.words, w)
	}
	var best *known
	top := -1.0
	for _, p := range found {
		var said, agreed float64
		for _, w := range p.words {
			if share := s.of[w]; share > 0 {
				said += m.weight(m.words, w)
				agreed += share * m.weight(m.words, w)
			}
		}
		if like := p.near * agreed * agreed / ((said + 1e-9) * (said + all + 1e-9)); like > top {
			best, top = p.known, like
		}
	}
	return best
}

// draft composes an answer from the pairs' repairs, in this order: the lead's lines whose words
// other repairs share, such lines of the other repairs, the rest of the lead, commands that
// worked (also those of kin), and the lines of one other repair.
func (m *Memory) draft(found, kin []match, shown map[string]bool) draft {
	c := composing{m: m, shares: newShares(found, shown), said: map[string]bool{}}
	lead := m.lead(found, c.shares)
	own := candidates(lead)
	own = c.pick(own, maxLines)
	own = c.take(own, func(l candidate) bool { return c.agreed(l) && !comment().MatchString(l.text) })
	var others []candidate
	for _, p := range found {
		if p.known != lead {
			others = append(others, candidates(p.known)...)
		}
	}
	others = slices.DeleteFunc(others, func(l candidate) bool {
		return l.kind == edited && (comment().MatchString(l.text) || len(l.words) < 2 && strings.HasSuffix(l.text, ":")) // it says nothing alone
	})
	others = c.pick(others, maxAdded)
	own = c.take(own, func(l candidate) bool { return !comment().MatchString(l.text) })
	c.alone, c.of = true, newShares(slices.Concat(found, kin), shown).of
	others = slices.DeleteFunc(others, func(l candidate) bool { return l.kind != worked && l.kind != before })
	edits := slices.ContainsFunc(lead.lines, func(l line) bool { return l.kind == edited }) // no command does instead
	if !edits {
		c.pick(append(others, commands(kin)...), maxLines)
	}
	c.take(own, func(candidate) bool { return true })
	if !edits {
		c.takeSecond(found, lead)
	}
	return c.draft
}

// takeSecond adds the lines of the repair that is most like the others in the words that the
// draft does not hold yet.
func (c *composing) takeSecond(found []match, lead *known) {
	left := slices.DeleteFunc(slices.Clone(found), func(p match) bool { return p.known == lead })
	if len(left) == 0 || len(c.draft) >= maxLines {
		return
	}
	unsaid := shares{maps.Clone(c.of), c.tasks}
	maps.DeleteFunc(unsaid.of, func(w string, _ float64) bool { return c.said[w] })
	c.take(candidates(c.m.lead(left, unsaid)), func(l candidate) bool {
		return l.kind != edited && slices.ContainsFunc(l.words, func(w string) bool { return c.of[w] > 0 && !c.said[w] })
	})
}

var comment = shell.Pattern(`^\s*(#|//|/?\*|--\s|<!--)`)

// composing is a draft under construction.
type composing struct {
	draft
	m *Memory
	shares
	said  map[string]bool // the words in the draft
	alone bool            // words that only one task's repairs hold count, too
}

// gain returns the weight of the new words that a line adds, divided by its length. It is 0 if
// most of them are from one task.
func (c *composing) gain(l candidate) float64 {
	var worth, agreed, all float64
	for _, w := range l.words {
		if c.of[w] == 0 || c.said[w] {
			continue
		}
		weight := c.m.weight(c.m.words, w)
		all += weight
		if c.alone || len(c.tasks[w]) > 1 {
			agreed += weight
			worth += c.of[w] * weight
		}
	}
	if agreed < ownShare*all {
		return 0
	}
	return worth / (lineCost + float64(len(l.text))/4)
}

// pick adds up to most lines, each time the one with the largest gain, and returns the rest.
func (c *composing) pick(from []candidate, most int) []candidate {
	for ; most > 0 && len(c.draft) < maxLines; most-- {
		best, top := -1, 0.0
		if !c.alone {
			top = leastGain
		}
		for i, l := range from {
			if g := c.gain(l); g > top {
				best, top = i, g
			}
		}
		if best < 0 {
			break
		}
		c.add(from[best])
		from = slices.Delete(from, best, best+1)
	}
	return from
}

// take adds the lines that are wanted, in their order, and returns the rest.
func (c *composing) take(from []candidate, wanted func(candidate) bool) (rest []candidate) {
	for _, l := range from {
		if len(c.draft) < maxLines && wanted(l) {
			c.add(l)
		} else {
			rest = append(rest, l)
		}
	}
	return rest
}

func (c *composing) add(l candidate) {
	c.draft = append(c.draft, l)
	for _, w := range l.words {
		c.said[w] = true
	}
}

// agreed reports whether the draft holds a line's words already and several tasks share one.
func (c *composing) agreed(l candidate) bool {
	several := false
	for _, w := range l.words {
		if c.of[w] > 0 && !c.said[w] {
			return false
		}
		several = several || len(c.tasks[w]) > 1
	}
	return several
}

// commands lists the commands that worked.
func commands(found []match) (out []candidate) {
	for _, p := range found {
		for _, l := range candidates(p.known) {
			if l.kind == worked {
				out = append(out, l)
			}
		}
	}
	return out
}

func candidates(k *known) (out []candidate) {
	for i, l := range k.lines {
		out = append(out, candidate{l, k, i})
	}
	return out
}

// said returns the words of the lines that fit into a budget of tokens.
func (d draft) said(budget int) map[string]bool {
	said := map[string]bool{}
	left := float64(budget) * tokenSize * 0.7 // a card's frame takes the rest
	for _, c := range d {
		if left -= float64(len(c.text)); left < 0 {
			break
		}
		for _, w := range c.words {
			said[w] = true
		}
	}
	return said
}

// inOrder sorts the lines by repair, that of the first line first, and by their position in it.
func (d draft) inOrder() draft {
	var order []*known
	for _, c := range d {
		if !slices.Contains(order, c.from) {
			order = append(order, c.from)
		}
	}
	out := slices.Clone(d)
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.from), slices.Index(order, b.from)), cmp.Compare(a.at, b.at))
	})
	return out
}
