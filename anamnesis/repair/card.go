package repair

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Limits of what is shown.
const (
	maxCards      = 3 // foreseen
	maxCardLines  = 8
	maxLineBytes  = 200
	maxIssueBytes = 120
)

// Card is an answer: what failed, what made such failures right, and where
// that is known from.
type Card struct {
	Issue      string
	Solution   []string // as it is shown, line by line
	Why        string   // the reason that the agent had, where it said one
	From       *Pair    // the earlier pair it rests on
	Held, Of   int      // of the earlier failures compared, those it would have repaired
	Confidence float64  // 0 to 1
	adapted    bool     // a command is in terms of the failed call
	Near       bool     // it quotes the repairs of the nearest calls, whose failures are others
}

// newCard takes the lines of a draft, in order, that the budget holds, and the reason of
// the repair that it rests on: the one that the first line is from. change puts a line in
// terms of the failed call.
func newCard(d draft, found []match, change func(*known, line) (string, bool), budget int, count func(string) int) Card {
	from := found[0].known
	if len(d.from) > 0 {
		from = d.from[0]
	}
	c := Card{From: &from.Pair, Issue: firstBytes(from.Failure.Line, maxIssueBytes), Of: neighbours, Held: neighbours} // as long as they can become
	type place struct {
		from *known
		file string
	}
	var in place
	for i, l := range d.lines {
		with := c
		with.Solution = slices.Clone(c.Solution)
		at, other := place{d.from[i], l.file}, ""
		if at.from != from {
			other = "or " // what another task did
		}
		text, adapted := change(at.from, l)
		with.adapted = c.adapted || adapted
		if l.kind != edited {
			at.file, text = "", other+string(l.kind)+text
		} else if at != in {
			with.Solution = append(with.Solution, other+"in "+path.Base(l.file)+":")
		}
		with.Solution = append(with.Solution, strings.Split(text, "\n")...)
		if count(with.String()) <= budget {
			c, in = with, at
		}
	}
	if with := c; len(c.Solution) > 0 && from.Why != "" && from.about(from.Why) {
		if with.Why = from.Why; count(with.String()) <= budget {
			c = with
		}
	}
	return c
}

// about reports whether an agent's words are about its repair: whether they hold two of
// its words.
func (k *known) about(why string) bool {
	n := 0
	for _, w := range Words(why) {
		if slices.Contains(k.words, w) {
			n++
		}
	}
	return n >= min(2, len(k.words))
}

// String renders the card as it is shown.
func (c Card) String() string {
	var b strings.Builder
	how := "Repaired before by"
	if c.Near {
		how = "Calls like this one, with other failures, succeeded as"
	}
	if c.adapted {
		how += ", with the names of this call"
	}
	fmt.Fprintf(&b, "[lesson %s · %s] %s", c.From.Card, c.trust(), c.Issue)
	if c.Why != "" {
		fmt.Fprintf(&b, "\nThat agent's words: %s", c.Why)
	}
	fmt.Fprintf(&b, "\n%s:", how)
	for _, l := range c.Solution {
		b.WriteString("\n  " + l)
	}
	return b.String()
}

func (c Card) trust() string {
	held := fmt.Sprintf("repairs %d of %d such failures", c.Held, c.Of)
	switch {
	case c.Near:
		held = "a similar call"
	case c.Of == 1:
		held = "one such failure"
	case c.Held == 0:
		held = fmt.Sprintf("%d such failures", c.Of)
	}
	if c.From.Words != "" {
		return c.From.Words + "; " + held
	}
	if c.From.Trusted {
		return "REVIEWED"
	}
	return "UNVERIFIED, " + held
}
