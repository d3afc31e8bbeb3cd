package repair

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of what is shown.
const (
	maxCards      = 3 // foreseen
	maxCardLines  = 12
	maxLineBytes  = 200
	maxIssueBytes = 120
)

// Card is an answer: what failed, what made such failures right, and where
// that is known from.
type Card struct {
	Issue      string
	Solution   []string
	From       *Pair   // the earlier pair it rests on
	Held, Of   int     // of the earlier failures compared, those it would have repaired
	Confidence float64 // 0 to 1
	Near       bool    // it quotes the repairs of the nearest calls, whose failures are others
}

// newCard takes the lines of a draft, in order, that the budget holds. The card rests
// on the best of the pairs that a line is from, or else on the best.
func newCard(d draft, found []match, budget int, count func(string) int) Card {
	i := max(0, slices.IndexFunc(found, func(p match) bool { return slices.Contains(d.from, p.known) }))
	from := &found[i].Pair
	c := Card{From: from, Issue: firstBytes(from.Failure.Line, maxIssueBytes), Of: neighbours, Held: neighbours} // as long as they can become
	for _, l := range d.lines {
		with := c
		with.Solution = append(c.Solution[:len(c.Solution):len(c.Solution)], string(l.kind)+l.text)
		if count(with.String()) <= budget {
			c = with
		}
	}
	return c
}

// String renders the card as it is shown.
func (c Card) String() string {
	var b strings.Builder
	how := "Repaired before with:"
	if c.Near {
		how = "Calls like this one, with other failures, succeeded with:"
	}
	fmt.Fprintf(&b, "[lesson %s · %s] %s\n%s", c.From.Card, c.trust(), c.Issue, how)
	for _, l := range c.Solution {
		b.WriteString("\n  " + l)
	}
	return b.String()
}

func (c Card) trust() string {
	held := fmt.Sprintf("fits %d of %d like it", c.Held, c.Of)
	if c.Near {
		held = "a near call"
	}
	if c.From.Words != "" {
		return c.From.Words + "; " + held
	}
	if c.From.Trusted {
		return "REVIEWED"
	}
	return "UNVERIFIED, " + held
}
