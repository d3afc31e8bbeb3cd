package repair

import (
	"fmt"
	"strings"
)

// Limits of what is shown.
const (
	maxCards      = 3 // of one answer
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
}

// newCard takes the lines of a draft, in order, that the budget holds.
func newCard(d draft, budget int, count func(string) int) Card {
	var c Card
	for i, l := range d.lines {
		with := c
		with.Solution = append(c.Solution[:len(c.Solution):len(c.Solution)], l)
		if c.From == nil {
			with.From, with.Issue = d.from[i], firstBytes(d.from[i].Failure.Line, maxIssueBytes)
		}
		with.Of, with.Held = neighbours, neighbours // as long as the line can become
		if count(with.String()) <= budget {
			c = with
		}
	}
	return c
}

// String renders the card as it is shown.
func (c Card) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Issue: %s\nSolution: these lines recur where it was repaired\n", c.Issue)
	for _, l := range c.Solution {
		b.WriteString("  " + l + "\n")
	}
	fmt.Fprintf(&b, "Constraint: would have repaired %d of %d earlier failures like it; see %s, calls %d to %d",
		c.Held, c.Of, c.From.Run, c.From.Failed, c.From.Fixed)
	return b.String()
}
