package page

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
)

// maxWaitingListed is how many waiting cards the list of them shows.
const maxWaitingListed = 200

// queue is the waiting cards that an address selects, in the order in which they are shown.
type queue struct {
	review.Filter
	By      review.By
	Query   url.Values
	Groups  []review.Group
	Cards   []*card.Card // of the groups
	Repos   []string     // of all that wait
	Total   int          // that wait
	entries map[string]knowledgebase.Entry
}

// selection returns the part of an address that selects waiting cards.
func selection(r *http.Request) url.Values {
	all, q := r.URL.Query(), make(url.Values)
	for _, name := range []string{"q", "repo", "by"} {
		if value := all.Get(name); value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// withQuery adds a query, which may be empty, to a path.
func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

func (s *Server) waiting(r *http.Request) *queue {
	sel := selection(r)
	q := &queue{Filter: review.Filter{Words: sel.Get("q"), Repo: sel.Get("repo")},
		By: cmp.Or(review.By(sel.Get("by")), review.ByLikeness), Query: sel,
		entries: make(map[string]knowledgebase.Entry)}
	all := review.Waiting(s.store)
	for _, e := range all {
		q.entries[e.ID] = e
	}
	var fit []*card.Card
	for _, c := range s.store.Cards(all) {
		q.Total++
		if q.Matches(c) {
			fit = append(fit, c)
		}
		if repo := c.Scope.Repo; repo != "" && !slices.Contains(q.Repos, repo) {
			q.Repos = append(q.Repos, repo)
		}
	}
	slices.Sort(q.Repos)
	q.Groups = review.Groups(fit, q.By)
	for _, g := range q.Groups {
		q.Cards = append(q.Cards, g.Cards...)
	}
	return q
}

// path returns the address of a waiting card, or with "" that of the list.
func (q *queue) path(id string) string {
	if id == "" {
		return withQuery("/review", q.Query)
	}
	return withQuery(reviewPath(id), q.Query)
}

func (q *queue) rows(cards []*card.Card) (out []listedCard) {
	for _, c := range cards {
		e := q.entries[c.ID]
		row := listed(c, e.Expired, e.Counts)
		row.Path, row.Seen = q.path(c.ID), e.Fingerprint
		out = append(out, row)
	}
	return out
}

// queueView is what the list of waiting cards shows.
type queueView struct {
	*queue
	Shown  []shownGroup
	More   int    // beyond those listed
	First  string // the card to begin with
	Decide string // where the forms of groups are sent
	Broken []knowledgebase.BrokenCard
}

type shownGroup struct {
	review.Group
	Rows []listedCard
	No   review.Act // what ends its cards: reject or retire
}

// showQueue lists the cards that wait for a user.
func (s *Server) showQueue(w http.ResponseWriter, r *http.Request) error {
	q := s.waiting(r)
	v := queueView{queue: q, Broken: s.store.Broken(), Decide: withQuery("/review", q.Query)}
	room := maxWaitingListed
	for _, g := range q.Groups {
		g.Cards = g.Cards[:min(len(g.Cards), room)]
		if room -= len(g.Cards); len(g.Cards) == 0 {
			break
		}
		no := review.Reject
		if g.Cards[0].State == card.Reviewed {
			no = review.Retire
		}
		v.Shown = append(v.Shown, shownGroup{g, q.rows(g.Cards), no})
	}
	v.More = max(0, len(q.Cards)-maxWaitingListed)
	if len(q.Cards) > 0 {
		v.First = q.path(q.Cards[0].ID)
	}
	return s.render(w, r, http.StatusOK, "queue", s.framed(r, view{Title: "Review", Section: "/review", Body: v}))
}

// decideMany performs a decision about the cards that were ticked in a list.
func (s *Server) decideMany(w http.ResponseWriter, r *http.Request) error {
	d := review.Decision{Act: review.Act(r.PostForm.Get("act")), Seen: make(map[string]string)}
	if d.Act != review.Approve && d.Act != review.Reject && d.Act != review.Retire {
		return refuse(http.StatusBadRequest, "%q is not something to decide about several cards.", d.Act)
	}
	for _, ticked := range r.PostForm["card"] {
		id, seen, _ := strings.Cut(ticked, " ")
		d.IDs, d.Seen[id] = append(d.IDs, id), seen
	}
	if len(d.IDs) == 0 {
		return refuse(http.StatusBadRequest, "No card was ticked, and nothing was decided. Go back to the review.")
	}
	done, err := s.desk.Decide(r.Context(), d)
	if conflict, ok := errors.AsType[*knowledgebase.ConflictError](err); ok {
		return refuse(http.StatusConflict,
			"Nothing was decided: card %s has changed since the list was made. Go back to the review.", conflict.ID)
	}
	if err != nil {
		return err
	}
	return redirectDone(w, r, "/review", done)
}

type queuePlace struct {
	At, Of     int    // from 1; At is 0 for a card that does not wait
	Prev, Next string // "" at the ends
}

func (q *queue) place(id string) queuePlace {
	p := queuePlace{Of: len(q.Cards)}
	i := slices.IndexFunc(q.Cards, func(c *card.Card) bool { return c.ID == id })
	if i < 0 {
		return p
	}
	p.At = i + 1
	if i > 0 {
		p.Prev = q.Cards[i-1].ID
	}
	if i+1 < len(q.Cards) {
		p.Next = q.Cards[i+1].ID
	}
	return p
}

// queueAround is how many waiting cards are listed beside one.
const queueAround = 20

// around returns the rows of the cards that wait next to the one at that place.
func (q *queue) around(p queuePlace) []listedCard {
	first := max(0, min(p.At-1-queueAround/3, len(q.Cards)-queueAround))
	rows := q.rows(q.Cards[first:min(len(q.Cards), first+queueAround)])
	if p.At > 0 {
		rows[p.At-1-first].Current = true
	}
	return rows
}

// undo takes the last decision back and shows the card it was about. The form
// says which one the page had shown: another browser may have decided since.
func (s *Server) undo(w http.ResponseWriter, r *http.Request) error {
	seq, err := strconv.Atoi(r.PostForm.Get("act"))
	if err != nil {
		seq = 0 // no act has that number
	}
	done, err := s.desk.Undo(r.Context(), seq)
	if later, ok := errors.AsType[*review.LaterError](err); ok {
		return refuse(http.StatusConflict, "Nothing was taken back. Since that page was made, this was decided here: "+
			"%s. Open the review again to see what can be taken back.", later.Last.What)
	}
	if conflict, ok := errors.AsType[*knowledgebase.ConflictError](err); ok {
		return refuse(http.StatusConflict, "Nothing was taken back: card %s was changed since. It stays as it is "+
			"now; its history shows what it was.", conflict.ID)
	}
	if err != nil {
		return err
	}
	q := s.waiting(r)
	to := cardPath(done.ID)
	if q.place(done.ID).At > 0 {
		to = reviewPath(done.ID)
	}
	return redirectDone(w, r, to, done)
}
