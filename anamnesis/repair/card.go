package repair

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"anamnesis/anamnesis/edit"
)

// Limits of what is shown.
const (
	maxCards      = 3 // foreseen
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

// newCard takes the lines of a draft that the budget holds, and the reason of the repair
// that it rests on.
func newCard(d draft, found []match, budget int, count func(string) int) Card {
	from := found[0].known
	if len(d) > 0 {
		from = d[0].from
	}
	c := Card{From: &from.Pair, Issue: firstBytes(from.Failure.Line, maxIssueBytes), Of: neighbours, Held: neighbours} // as long as they can become
	var in draft
	said := map[string]bool{}
	for _, l := range d {
		key := strings.TrimSpace(l.text)
		if said[key] {
			continue
		}
		said[key] = true
		with := append(slices.Clone(in), l)
		if next := c.with(with.inOrder()); count(next.String()) <= budget {
			c, in = next, with
		}
		if from.Why != "" && c.Why == "" && from.about(from.Why) {
			if next := c; len(in) > 0 {
				if next.Why = from.Why; count(next.String()) <= budget {
					c = next
				}
			}
		}
	}
	return c
}

// with is the card with these lines.
func (c Card) with(d draft) Card {
	type place struct {
		from *known
		file string
	}
	var in place
	c.Solution, c.adapted = nil, false
	for _, l := range d {
		at, other := place{l.from, l.file}, ""
		if &at.from.Pair != c.From {
			other = "or " // what another task did
		}
		c.adapted = c.adapted || l.adapted
		text := l.text
		if l.kind != edited {
			at.file, text = "", other+string(l.kind)+text
		} else if at != in {
			c.Solution = append(c.Solution, other+"in "+path.Base(l.file)+":")
		}
		if old, now, ok := edit.CutChanged(text); ok && l.kind == edited {
			c.Solution, text = append(c.Solution, "- "+strings.TrimSpace(old)), strings.TrimSpace(now)
		}
		in = at
		if l.kind == edited {
			if text == "" { // a line that was taken out
				continue
			}
			text = "+ " + text
		}
		c.Solution = append(c.Solution, text)
	}
	return c
}

// about reports whether an agent's words are about its repair: whether they hold two of
// its words.
func (k *known) about(why string) bool {
	n := 0
	for _, w := range edit.Words(why) {
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
