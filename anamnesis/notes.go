package anamnesis

import (
	"slices"
	"strings"

	"anamnesis/anamnesis/quote"
	"anamnesis/opstream/op"
)

// maxWorked is how many things that worked elsewhere a block names of a card.
const maxWorked = 2

// Statement is one thing said about the span, with the operations it rests on.
type Statement struct {
	Text string   `json:"text"`
	Ops  []uint64 `json:"ops,omitempty"`
}

// Confidence says how much a falsified path is to be trusted.
type Confidence string

// The confidences, best first.
const (
	ConfidenceHigh   Confidence = "high"
	ConfidenceMedium Confidence = "medium"
	ConfidenceLow    Confidence = "low"
)

// Falsified is a path that was tried and failed. It holds only for the state
// it names.
type Falsified struct {
	Action     string     `json:"action"`
	State      string     `json:"state"`           // the world it failed in
	Error      string     `json:"error,omitempty"` // verbatim after quote.Squash, at most MaxErrorRunes; empty when nothing was printed
	Why        string     `json:"why,omitempty"`
	Elsewhere  string     `json:"elsewhere,omitempty"` // what worked for other tasks, by the card that was shown
	Confidence Confidence `json:"confidence"`
	Ops        []uint64   `json:"ops"`
}

// Notes is everything a pass has to say, before it is cut to a block.
type Notes struct {
	Causes    []Statement `json:"failure_causes,omitempty"`
	Falsified []Falsified `json:"falsified,omitempty"`
	Findings  []Statement `json:"findings,omitempty"`
	Verified  []Statement `json:"verified,omitempty"`
	Untried   []Statement `json:"untried,omitempty"`
	Advice    []Statement `json:"advice,omitempty"`
}

func (n *Notes) empty() bool {
	return len(n.Causes)+len(n.Falsified)+len(n.Findings)+len(n.Verified)+len(n.Untried)+len(n.Advice) == 0
}

// recallElsewhere says of each falsified path what the card that its result showed says
// worked for other tasks.
func (n *Notes) recallElsewhere(recs []*record) {
	for i, f := range n.Falsified {
		for _, rec := range recs {
			if rec.worked != "" && (slices.Contains(f.Ops, rec.end) || slices.Contains(f.Ops, rec.seq)) {
				n.Falsified[i].Elsewhere = rec.worked
			}
		}
	}
}

// workedElsewhere is what a card's solution names to be run or changed, in short.
func workedElsewhere(c *op.CardRef) string {
	tries := make([]string, 0, maxWorked)
	for _, s := range c.Tries[:min(len(c.Tries), maxWorked)] {
		tries = append(tries, quote.Squash(s))
	}
	if len(tries) == 0 {
		return ""
	}
	return quote.ClipMarked(strings.Join(tries, "; "), maxActionRunes) + " (lesson " + c.ID + ")"
}

// cardDraft is a card before it has an id.
type cardDraft struct {
	topic      string
	issue      []string
	solution   []string
	constraint []string
	ops        []uint64
	tainted    bool
	observed   bool // it says only what the records say
}
