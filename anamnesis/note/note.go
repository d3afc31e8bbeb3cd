// Package note holds what a pass found out about a span. It decodes notes from a model's reply, renders
// them as a hot block, and parses falsified paths of such a block.
package note

import "slices"

// Limits of what a note says, in characters.
const (
	MaxActionRunes = 160 // of one action
	MaxStateRunes  = 160
	MaxErrorRunes  = 200 // of a quoted error
)

// Statement is one sentence about the span, with the operations that it rests on.
type Statement struct {
	Text string   `json:"text"`
	Ops  []uint64 `json:"ops,omitempty"`
}

// Confidence is how far a falsified path may be trusted.
type Confidence string

// The confidences, best first.
const (
	ConfidenceHigh   Confidence = "high"
	ConfidenceMedium Confidence = "medium"
	ConfidenceLow    Confidence = "low"
)

// Falsified is an action that failed. In another state than the one it names, the action may succeed.
type Falsified struct {
	Action     string     `json:"action"`
	State      string     `json:"state"`           // the world it failed in
	Error      string     `json:"error,omitempty"` // verbatim after quote.Squash; empty when nothing was printed
	Why        string     `json:"why,omitempty"`
	Confidence Confidence `json:"confidence"`
	Ops        []uint64   `json:"ops"`
}

// Notes is everything that a pass found out, before it is cut to the size of a block.
type Notes struct {
	Causes    []Statement `json:"failure_causes,omitempty"`
	Falsified []Falsified `json:"falsified,omitempty"`
	Findings  []Statement `json:"findings,omitempty"`
	Verified  []Statement `json:"verified,omitempty"`
	Untried   []Statement `json:"untried,omitempty"`
	Advice    []Statement `json:"advice,omitempty"`

	// Places are the steps that the model can go back to, and Effects what no jump undoes. Only the
	// compaction of steps whose changes remain has them.
	Places  []Statement `json:"-"`
	Effects []Statement `json:"-"`
	// Edits are the files that calls changed. Records tell them, not a model.
	Edits []Statement `json:"-"`
}

// Empty reports whether there are no notes.
func (n *Notes) Empty() bool {
	return len(n.Causes)+len(n.Falsified)+len(n.Findings)+len(n.Verified)+len(n.Untried)+len(n.Advice) == 0
}

// Card is a card before it has an id.
type Card struct {
	Topic      string
	Issue      []string
	Solution   []string
	Constraint []string
	WrongIf    string // what would show it wrong
	Ops        []uint64
	Tainted    bool
}

// SortedOps sorts operations and removes duplicates.
func SortedOps(ops []uint64) []uint64 {
	return slices.Compact(slices.Sorted(slices.Values(ops)))
}
