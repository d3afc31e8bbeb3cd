package proposal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
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

// ParseDecisions reads a file of decisions, a line of JSON each. Lines it does not understand give
// an error naming the line.
func ParseDecisions(data []byte) (decided []Decision, err error) {
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var one Decision
		if err := json.Unmarshal(line, &one); err != nil {
			return decided, fmt.Errorf("line %d: %w", i+1, err)
		}
		decided = append(decided, one)
	}
	return decided, nil
}

// Open returns the proposals without a decision.
func Open(ps []Proposal, decided []Decision) []Proposal {
	open := []Proposal{}
	for _, p := range ps {
		if !slices.ContainsFunc(decided, func(d Decision) bool { return d.ID == p.ID }) {
			open = append(open, p)
		}
	}
	return open
}
