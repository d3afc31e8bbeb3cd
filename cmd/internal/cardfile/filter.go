//go:build unix

package cardfile

import (
	"slices"

	"anamnesis/cmd/internal/exit"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
)

// Filter selects cards of a list.
type Filter struct {
	States  []string // none selects all
	Expired bool     // only those past their date
}

// Check refuses an unknown state.
func (f Filter) Check() error {
	for _, s := range f.States {
		if !card.State(s).Valid() {
			return exit.Usagef("--state %s: unknown; use draft, reviewed, retired or superseded", s)
		}
	}
	return nil
}

// Shows reports whether the filter selects a card.
func (f Filter) Shows(e knowledgebase.Entry) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, string(e.State))) && (!f.Expired || e.Expired)
}
