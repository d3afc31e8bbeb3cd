//go:build unix

package cardfile

import (
	"slices"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/recalled"
	"anamnesis/orchestrator/memory"
	"anamnesis/orchestrator/taskdir"
)

// Collect returns the cards of some stores, each id once and without secrets. Those in the
// folder own are about the project repo.
func Collect(stores []*knowledgebase.Store, own, repo string) ([]*card.Card, error) {
	var out []*card.Card
	for _, s := range stores {
		for _, e := range s.List() {
			c, err := s.Get(e.ID)
			if err != nil {
				return nil, err
			}
			if c, _, err = s.Redacted(c); err != nil {
				return nil, err
			}
			if s.Dir() == own {
				c = c.Clone()
				c.Scope.Repo = repo
			}
			if !slices.ContainsFunc(out, func(o *card.Card) bool { return o.ID == c.ID }) {
				out = append(out, c)
			}
		}
	}
	return out, nil
}

// Decided is a card after a decision.
type Decided struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Topic string `json:"topic"`
	Path  string `json:"path"`
}

// Reload returns the present versions of stored cards.
func Reload(store *knowledgebase.Store, stored []knowledgebase.Stored) ([]Decided, error) {
	out := []Decided{}
	for _, st := range stored {
		c, err := store.Get(st.ID)
		if err != nil {
			return nil, err
		}
		out = append(out, Decided{st.ID, string(c.State), c.Topic, st.Path})
	}
	return out, nil
}

// Unreadable is a file that is not a readable card.
type Unreadable struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// Broken lists the files of a store that are not readable cards.
func Broken(store *knowledgebase.Store) []Unreadable {
	out := []Unreadable{}
	for _, b := range store.Broken() {
		out = append(out, Unreadable{b.Path, b.Err.Error()})
	}
	return out
}

// TrustForUser returns how far a card can be trusted on this machine. A user is also shown
// what is withheld from tasks.
func TrustForUser(h taskdir.Home, store *knowledgebase.Store) func(c *card.Card) recalled.Trust {
	return func(c *card.Card) recalled.Trust {
		tr := memory.TrustOf(h, c, store.Counts(c.ID))
		tr.Withheld = false
		return tr
	}
}
