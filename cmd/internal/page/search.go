package page

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/cmd/internal/page/patch"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/history"
	"anamnesis/knowledge_base/retrieval"
	"anamnesis/knowledge_base/usage"
)

const (
	// cardsListed is how many cards one page of the list shows.
	cardsListed = 100
	// cardsFound is how many cards a search shows.
	cardsFound    = 20
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
	// Withheld counts the drafts that fit and that no task is shown before they were reviewed.
	Withheld int
	Broken   []knowledgebase.BrokenCard
}

// listedCard is a card's row in a list.
type listedCard struct {
	ID, Title  string
	Path, Seen string // its page, and the fingerprint of its text
	State      card.State
	Issue      string   // the first line of what it answers
	About      []string // project, age and what a reader should know
	Current    bool     // it is the one shown beside the list
}

func listed(c *card.Card, expired bool, counts usage.Counts) listedCard {
	row := listedCard{ID: c.ID, Title: c.Title(), Path: cardPath(c.ID), State: c.State}
	if len(c.Issue) > 0 {
		row.Issue, _, _ = strings.Cut(strings.ReplaceAll(c.Issue[0], "`", ""), "\n")
	}
	if c.Scope.Repo != "" {
		row.About = append(row.About, c.Scope.Repo)
	}
	row.About = append(row.About, c.Created.Local().Format(time.DateOnly))
	if c.Provenance.Tainted && c.State == card.Draft {
		row.About = append(row.About, "drawn from outside text")
	}
	if expired {
		row.About = append(row.About, "past its date")
	}
	if counts.Shown > 0 {
		row.About = append(row.About, fmt.Sprintf("shown %d×", counts.Shown))
	}
	return row
}

// listCards shows the newest cards, or what a query finds; for htmx the list
// alone.
func (s *Server) listCards(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	v := listView{Query: strings.TrimSpace(q.Get("q")), State: card.State(q.Get("state")), Broken: s.store.Broken(),
		States: []card.State{card.Draft, card.Reviewed, card.Retired, card.Superseded}}
	if v.State != "" && !v.State.Valid() {
		return refuse(http.StatusBadRequest, "%q is no state of a card.", v.State)
	}
	if n := len([]rune(v.Query)); n > maxQueryRunes {
		return refuse(http.StatusBadRequest, "The question has %d characters: use at most %d.", n, maxQueryRunes)
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
	return s.render(w, r, http.StatusOK, "cards", s.framed(r, view{Title: "Cards", Section: "/cards", Body: v}))
}

func (s *Server) list(v *listView, from string) error {
	entries := slices.DeleteFunc(s.store.List(),
		func(e knowledgebase.Entry) bool { return v.State != "" && e.State != v.State })
	v.Total = len(entries)
	if from != "" {
		n, err := strconv.Atoi(from)
		if err != nil || n < 0 || n > v.Total {
			return refuse(http.StatusBadRequest, "There are %d cards; the list cannot begin at %q.", v.Total, from)
		}
		v.From = n
	}
	page := entries[v.From:min(v.Total, v.From+cardsListed)]
	of := make(map[string]knowledgebase.Entry)
	for _, e := range page {
		of[e.ID] = e
	}
	for _, c := range s.store.Cards(page) { // without those removed meanwhile
		v.Cards = append(v.Cards, listed(c, of[c.ID].Expired, of[c.ID].Counts))
	}
	if v.From+len(page) < v.Total {
		v.Older = v.From + len(page)
	}
	return nil
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
			v.Cards = append(v.Cards, listed(c, h.Expired, usage.Counts{}))
		}
	}
	v.Total = len(v.Cards)
	q.Withheld = true
	withheld, err := s.store.Search(r.Context(), q)
	if err != nil {
		return fmt.Errorf("search: %w", err)
	}
	if v.State == "" || v.State == card.Draft {
		v.Withheld = len(withheld)
	}
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
	Diff patch.Diff
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
		v.Revisions = append(v.Revisions, revision{rev, patch.Read(rev.Diff)})
	}
	return s.render(w, r, http.StatusOK, "history", view{Title: "History: " + v.Topic, Section: "/cards", Body: v})
}
