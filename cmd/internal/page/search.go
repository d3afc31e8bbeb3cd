package page

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/retrieval"
)

const (
	// cardsListed is how many cards one page of the list shows.
	cardsListed = 100
	// cardsFound is how many cards a search shows.
	cardsFound = 20
	// maxQueryRunes bounds a query.
	maxQueryRunes = 2000
)

// listView is what the list of cards shows: all of them, or those found.
type listView struct {
	Query  string
	State  card.State // "" for any
	States []card.State
	Cards  []listedCard
	Total  int // found, or in that state
	From   int // how many stand before the first one shown
	Older  int // where the next page begins; 0: this is the last
	Note   string
	Broken []knowledgebase.BrokenCard
	Keys   []key
}

type listedCard struct {
	ID, Topic, Marks string
	State            card.State
	Created          string
}

// listCards shows the newest cards, or what a query finds; for htmx the list
// alone.
func (s *Server) listCards(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := listView{Query: strings.TrimSpace(q.Get("q")), State: card.State(q.Get("state")), Broken: s.store.Broken(),
		States: []card.State{card.Draft, card.Reviewed, card.Retired, card.Superseded}, Keys: []key{{"/", "search"}}}
	if v.State != "" && !v.State.Valid() {
		return refuse(http.StatusBadRequest, "%q is no state of a card.", v.State)
	}
	if n := len([]rune(v.Query)); n > maxQueryRunes {
		return refuse(http.StatusBadRequest, "The question has %d characters, at most %d are looked for.", n, maxQueryRunes)
	}
	var err error
	if v.Query == "" {
		err = s.list(&v, q.Get("from"))
	} else {
		err = s.search(r, &v)
	}
	if err != nil {
		return err
	}
	if partOnly(r) {
		return s.renderPart(w, "found-part", v)
	}
	return s.render(w, http.StatusOK, "cards", s.framed(r, view{Title: "Cards", Section: "/cards", Body: v}))
}

func (s *Server) list(v *listView, from string) error {
	entries := slices.DeleteFunc(s.store.List(), func(e knowledgebase.Entry) bool { return v.State != "" && e.State != v.State })
	v.Total = len(entries)
	if from != "" {
		n, err := strconv.Atoi(from)
		if err != nil || n < 0 || n > v.Total {
			return refuse(http.StatusBadRequest, "There are %d cards; none stands behind %q.", v.Total, from)
		}
		v.From = n
	}
	page := entries[v.From:min(v.Total, v.From+cardsListed)]
	for _, e := range page {
		v.Cards = append(v.Cards, listedCard{ID: e.ID, Topic: e.Topic, State: e.State, Created: e.Created.Local().Format("2006-01-02"), Marks: marks(e.Tainted, e.Expired, e.State)})
	}
	if v.From+len(page) < v.Total {
		v.Older = v.From + len(page)
	}
	return nil
}

// marks is what a reader should know of a card in a list.
func marks(tainted, expired bool, state card.State) string {
	var out []string
	if tainted && state == card.Draft {
		out = append(out, "drawn from outside text")
	}
	if expired {
		out = append(out, "past its date")
	}
	return strings.Join(out, ", ")
}

func (s *Server) search(r *http.Request, v *listView) error {
	q := knowledgebase.Query{Text: v.Query, K: cardsFound}
	if v.State != "" {
		q.K = retrieval.MaxK // of which those in that state are shown
	}
	hits, err := s.store.Search(r.Context(), q)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	if err := s.store.VectorError(); err != nil {
		v.Note = "Searched without vectors: " + err.Error()
	}
	for _, h := range hits {
		c := h.Card
		if len(v.Cards) < cardsFound && (v.State == "" || c.State == v.State) {
			v.Cards = append(v.Cards, listedCard{ID: c.ID, Topic: c.Topic, State: c.State,
				Created: c.Created.Local().Format("2006-01-02"), Marks: marks(c.Provenance.Tainted, h.Expired, c.State)})
		}
	}
	v.Total = len(v.Cards)
	return nil
}

// historyView is how a card became what it is.
type historyView struct {
	ID, Topic string
	Revisions []revision
	More      int
}

type revision struct {
	history.Revision
	Diff diff
}

func (s *Server) showHistory(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("card")
	revs, err := s.store.History(r.Context(), id)
	if err != nil {
		return err
	}
	v := historyView{ID: id, Topic: id, More: max(0, len(revs)-maxRevisions)}
	if c, err := s.store.Get(id); err == nil {
		v.Topic = c.Topic
	}
	for _, rev := range revs[:len(revs)-v.More] {
		v.Revisions = append(v.Revisions, revision{rev, readDiff(rev.Diff)})
	}
	return s.render(w, http.StatusOK, "history", view{Title: "History: " + v.Topic, Section: "/cards", Body: v})
}
