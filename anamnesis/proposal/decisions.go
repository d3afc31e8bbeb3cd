package proposal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// The decisions.
const (
	Accepted = "accepted"
	Rejected = "rejected"
)

// Decision is what a user decided about a proposal.
type Decision struct {
	ID       string    `json:"id"`
	Decision string    `json:"decision"` // Accepted | Rejected
	Pattern  string    `json:"pattern"`
	EAS      int       `json:"eas"`
	At       time.Time `json:"at"`
}

// Decisions are what was decided so far, a line of JSON each.
type Decisions struct{ lines []Decision }

// ParseDecisions reads a file of decisions. Lines it does not understand give
// an error naming the line.
func ParseDecisions(data []byte) (Decisions, error) {
	var d Decisions
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var one Decision
		if err := json.Unmarshal(line, &one); err != nil {
			return d, fmt.Errorf("line %d: %w", i+1, err)
		}
		d.lines = append(d.lines, one)
	}
	return d, nil
}

// Encode returns the content of the decisions file.
func (d Decisions) Encode() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	for _, one := range d.lines {
		if err := enc.Encode(one); err != nil {
			return nil, fmt.Errorf("encode decision %s: %w", one.ID, err)
		}
	}
	return b.Bytes(), nil
}

// With adds a decision.
func (d Decisions) With(p Proposal, decision string, at time.Time) Decisions {
	d.lines = append(d.lines, Decision{p.ID, decision, p.Row.Pattern, p.Row.EAS, at.UTC()})
	return d
}

// Open returns the proposals without a decision.
func (d Decisions) Open(ps []Proposal) []Proposal {
	decided := make(map[string]bool)
	for _, one := range d.lines {
		decided[one.ID] = true
	}
	open := []Proposal{}
	for _, p := range ps {
		if !decided[p.ID] {
			open = append(open, p)
		}
	}
	return open
}
