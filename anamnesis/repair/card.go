package repair

import (
	"fmt"
	"strings"

	"anamnesis/anamnesis/failure"
)

// Limits of one card.
const (
	maxLineBytes  = 200
	maxCardLines  = 12
	maxIssueBytes = 120
)

// Card is an answer: what failed, what made such failures right, and where
// that is known from.
type Card struct {
	Issue      string
	Solution   []string
	Constraint string
	From       *Pair   // the earlier pair it rests on
	Held, Of   int     // of the failures compared, those that it would have repaired
	Confidence float64 // 0 to 1
}

func newCard(f failure.Failure, command string, found []match, d draft, budget int, count func(string) int) Card {
	c := Card{Issue: firstBytes(f.Line, maxIssueBytes), From: found[0].Pair, Of: len(found)}
	for i, l := range d.lines {
		with := c
		with.Solution = append(c.Solution[:len(c.Solution):len(c.Solution)], l)
		if count(with.String()) > budget {
			continue
		}
		if i == 0 {
			with.From = d.from[0]
		}
		c = with
	}
	return c
}

// String renders the card as it is shown.
func (c Card) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Issue: %s\nSolution:\n", c.Issue)
	for _, l := range c.Solution {
		b.WriteString("  " + l + "\n")
	}
	fmt.Fprintf(&b, "Constraint: drawn from %d earlier repairs; see %s, calls %d to %d", c.Of, c.From.Run, c.From.Failed, c.From.Fixed)
	return b.String()
}
