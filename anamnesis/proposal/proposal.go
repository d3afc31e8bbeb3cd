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

// Sort orders proposals: measurements first, then by model.
func Sort(ps []Proposal) {
	order := []Kind{KindProbe, KindHistory, KindSearch}
	slices.SortFunc(ps, func(x, y Proposal) int {
		return cmp.Or(slices.Index(order, x.Kind)-slices.Index(order, y.Kind),
			cmp.Compare(x.Row.Pattern, y.Row.Pattern), cmp.Compare(x.ID, y.ID))
	})
}
