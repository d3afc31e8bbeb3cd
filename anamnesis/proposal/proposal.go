package proposal

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"anamnesis/anamnesis/attention"
)

// Kind says where a proposal comes from.
type Kind string

// The kinds, best evidence first.
const (
	KindProbe   Kind = "probe"   // a measurement of this model
	KindHistory Kind = "history" // how its calls went
	KindTable   Kind = "table"   // another table's row
	KindSearch  Kind = "search"  // what a page says that a search found
)

// Proposal is one change of the table, for a user to decide about.
type Proposal struct {
	ID       string        `json:"id"` // of the change and its evidence: new evidence, new id
	Kind     Kind          `json:"kind"`
	Row      attention.Row `json:"row"` // what would be written; Updated and By are the writer's
	Was      attention.EAS `json:"was"` // what holds now
	Evidence []string      `json:"evidence"`
}

func newProposal(k Kind, key string, r attention.Row, was attention.EAS, evidence ...string) Proposal {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%s/%d/%s", k, r.Pattern, r.EAS, key))
	return Proposal{ID: fmt.Sprintf("%x", sum[:4]), Kind: k, Row: r, Was: was, Evidence: evidence}
}

// FromProbe proposes what a probe measured, where the table says otherwise.
func FromProbe(row attention.Row, t *attention.Table) []Proposal {
	s := t.Lookup(row.Pattern)
	if s.EAS == row.EAS && s.Known {
		return nil
	}
	return []Proposal{newProposal(KindProbe, row.Source, row, s, row.Source)}
}

// FromTable proposes the rows of another table that are newer, or better
// founded, than those in effect, and those of patterns the table does not
// have. A row that came from that table itself proposes nothing.
func FromTable(other, t *attention.Table) []Proposal {
	var out []Proposal
	for _, r := range other.Rows() {
		now := t.Row(r.Pattern)
		switch {
		case now == nil:
		case now.EAS == r.EAS, now.Origin == r.Origin:
			continue
		case r.Updated <= now.Updated && rank(r.Confidence) >= rank(now.Confidence):
			continue
		}
		s := t.Lookup(r.Pattern)
		if now != nil {
			s.Pattern, s.EAS, s.Confidence, s.Source, s.Updated, s.Origin, s.Known = now.Pattern, now.EAS, now.Confidence, now.Source, now.Updated, now.Origin, true
		}
		evidence := fmt.Sprintf("%s, row %s: %s (confidence %s, updated %s)", r.Origin, r.Pattern, r.Source, r.Confidence, r.Updated)
		out = append(out, newProposal(KindTable, r.Source+r.Updated, r, s, evidence))
	}
	return out
}

// rank orders confidences, best first.
func rank(c attention.Confidence) int {
	return slices.Index([]attention.Confidence{attention.ConfidenceHigh, attention.ConfidenceMedium, attention.ConfidenceLow, attention.ConfidenceNone}, c)
}

// Sort orders proposals: measurements first, then by model.
func Sort(ps []Proposal) {
	order := []Kind{KindProbe, KindHistory, KindTable, KindSearch}
	slices.SortFunc(ps, func(x, y Proposal) int {
		return cmp.Or(slices.Index(order, x.Kind)-slices.Index(order, y.Kind), cmp.Compare(x.Row.Pattern, y.Row.Pattern), cmp.Compare(x.ID, y.ID))
	})
}
