package page

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"anamnesis/cmd/internal/page/markup"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
	"anamnesis/knowledge_base/usage"
)

const (
	// nearestCards is how many cards are shown beside one.
	nearestCards = 5
	// maxAgainst is how many contradicting or similar cards are shown beside one; its
	// facts name all.
	maxAgainst = 3
	// maxRevisions is how many changes of a card its history shows.
	maxRevisions = 50
)

// origin is the page of a decision. It determines the page that follows.
type origin string

const (
	fromReview origin = "review"
	fromCard   origin = "card"
)

func originOf(s string) origin {
	if s == string(fromReview) {
		return fromReview
	}
	return fromCard
}

func cardPath(id string) string   { return "/cards/" + url.PathEscape(id) }
func reviewPath(id string) string { return "/review/" + url.PathEscape(id) }

// path returns the card's page within the review or the list of cards.
func (o origin) path(id string) string {
	if o == fromReview {
		return reviewPath(id)
	}
	return cardPath(id)
}

// section returns the entry of the navigation that the page belongs to.
func (o origin) section() string { return strings.TrimSuffix(o.path(""), "/") }

type cardView struct {
	ID, Title string
	State     card.State
	Seen      string // the fingerprint of the text shown
	From      origin
	Place     queuePlace
	Prev      string // the address of the card before it in the queue
	Next      string // and of the one after it, or of the list
	HTML      template.HTML
	Rendered  bool // false: the text is too long and is quoted
	Facts     []fact
	Notes     []string
	Uses      usage.Counts
	Queue     []listedCard // the cards that wait next to it, in the review
	Near      []nearCard
	Against   []versionCard   // contradicting and similar cards, shown beside it
	Tainted   bool            // drawn from outside text
	Can       map[string]bool // the acts that the card's state allows
	Decide    string          // where its forms are sent
}

// actView is a button that decides about a card. mergeView is one that replaces a card by
// another: if Turned, Near by the card shown, otherwise the card shown by Near.
type (
	actView struct {
		Card            *cardView
		Act, Label, Key string
	}
	mergeView struct {
		Card   *cardView
		Near   nearCard
		Turned bool
		At     int // index among the cards shown beside; below 0 if not among them
	}
)

// fact is a line of a card's front matter in words. Link may be empty.
type fact struct{ Name, Value, Link string }

// versionCard is a card whose text is shown beside another's, so that a user decides
// between them.
type versionCard struct {
	Near nearCard
	HTML template.HTML
}

type nearCard struct {
	ID, Title, First string
	State            card.State
	Seen             string
	Same             bool // probably says the same
	Opposed          bool // or the opposite
}

// showCard answers with a card's page, with problem at its top.
func (s *Server) showCard(w http.ResponseWriter, r *http.Request, code int, from origin, problem string) error {
	id := r.PathValue("card")
	v, err := s.cardView(r, id, from)
	if err != nil {
		return err
	}
	frame := s.framed(r, view{Title: v.Title, Section: from.section(), Body: v})
	if problem != "" {
		frame.Problem = problem
	}
	return s.render(w, r, code, "card", frame)
}

func (s *Server) cardView(r *http.Request, id string, from origin) (*cardView, error) {
	ctx := r.Context()
	c, seen, err := s.readCard(id)
	if err != nil {
		return nil, err
	}
	v := &cardView{ID: id, Title: c.Title(), State: c.State, Seen: seen, From: from,
		Decide: withQuery(cardPath(id)+"/decide", selection(r))}
	v.HTML, v.Rendered = markup.Render(c.Body())
	if from == fromReview {
		q := s.waiting(r)
		v.Place = q.place(id)
		v.Prev, v.Next, v.Queue = q.path(v.Place.Prev), q.path(v.Place.Next), q.around(v.Place)
	}
	for _, e := range s.store.List() {
		if e.ID == id {
			v.Notes = review.Notes(s.store, e)
			v.Uses = e.Counts
		}
	}
	v.Facts = s.facts(c)
	if v.Near, err = s.near(ctx, id); err != nil {
		return nil, err
	}
	v.Near = slices.DeleteFunc(v.Near, func(n nearCard) bool { return slices.Contains(c.Generalizes, n.ID) })
	v.Against, v.Tainted = s.against(c, &v.Near), c.Provenance.Tainted
	v.Notes = slices.DeleteFunc(v.Notes, func(note string) bool { // the other card is shown beside
		return slices.ContainsFunc(v.Against,
			func(a versionCard) bool { return strings.HasPrefix(note, "contradicts "+a.Near.ID+" ") })
	})
	gone := c.State == card.Retired || c.State == card.Superseded
	v.Can = map[string]bool{string(review.Approve): !gone, string(review.Reject): c.State == card.Draft,
		string(review.Retire): c.State == card.Reviewed, string(review.Restore): gone, string(review.Supersede): !gone}
	return v, nil
}

func (s *Server) readCard(id string) (*card.Card, string, error) {
	text, seen, err := s.store.Text(id)
	if err != nil {
		return nil, "", err
	}
	c, err := card.Parse(text)
	if err != nil {
		return nil, "", fmt.Errorf("card %s: %w", id, err)
	}
	return c, seen, nil
}

func (s *Server) facts(c *card.Card) []fact {
	day := func(t time.Time) string { return t.Local().Format(time.DateOnly) }
	facts := []fact{{"Task", c.SourceTask, ""}, {"Created", day(c.Created), ""}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, fact{Name: name, Value: value})
		}
	}
	if c.VerifiedAt != nil {
		add("Reviewed", day(*c.VerifiedAt))
	}
	if c.Expires != nil {
		add("Expires", day(*c.Expires))
	}
	add("Repository", c.Scope.Repo)
	add("Language", c.Scope.Language)
	add("Tool", strings.TrimSpace(c.Scope.Tool+" "+c.Scope.Version))
	add("Written by", c.Provenance.Model)
	add("Tags", strings.Join(c.Tags, ", "))
	for _, other := range c.Supersedes {
		facts = append(facts, fact{"Supersedes", other, cardPath(other)})
	}
	for _, other := range s.store.SupersededBy(c.ID) {
		facts = append(facts, fact{"Superseded by", other, cardPath(other)})
	}
	for _, other := range s.store.Opposing(c.ID) {
		facts = append(facts, fact{"Contradicts", other, cardPath(other)})
	}
	return facts
}

// against returns the cards to be shown beside one: those that contradict it, such as the
// local version of a card that was changed on both sides of a sync, and those of near that
// probably say the same or the opposite. It removes the latter from near.
func (s *Server) against(c *card.Card, near *[]nearCard) []versionCard {
	var out []versionCard
	add := func(n nearCard) bool {
		other, seen, err := s.readCard(n.ID)
		if err != nil || len(out) == maxAgainst || !current(c) || !current(other) {
			return false // the facts or the nearest cards name it, or it is decided
		}
		n.Title, n.State, n.Seen = other.Title(), other.State, seen
		v := versionCard{Near: n}
		v.HTML, _ = markup.Render(other.Body())
		out = append(out, v)
		return true
	}
	opposing := s.store.Opposing(c.ID)
	for _, id := range opposing {
		add(nearCard{ID: id, Opposed: true})
	}
	*near = slices.DeleteFunc(*near, func(n nearCard) bool {
		return slices.Contains(opposing, n.ID) || n.Same && add(n)
	})
	return out
}

// current reports whether a card is neither retired nor superseded.
func current(c *card.Card) bool { return c.State == card.Draft || c.State == card.Reviewed }

// near returns the related cards that resemble one most.
func (s *Server) near(ctx context.Context, id string) ([]nearCard, error) {
	neighbours, err := s.store.Nearest(ctx, id, nearestCards)
	if err != nil {
		return nil, err
	}
	var out []nearCard
	for _, n := range neighbours {
		c, seen, err := s.readCard(n.ID)
		if errors.Is(err, knowledgebase.ErrNotFound) || !n.Related() {
			continue // removed meanwhile, or about another thing
		}
		if err != nil {
			return nil, err
		}
		near := nearCard{ID: n.ID, Title: c.Title(), State: c.State, Seen: seen, Same: n.IsDuplicate()}
		for label, text := range c.Bullets() {
			near.First = label + ": " + strings.ReplaceAll(text, "`", "")
			break
		}
		out = append(out, near)
	}
	return out, nil
}

// framed adds the decision that the address names to a page, and what could be taken back.
func (s *Server) framed(r *http.Request, v view) view {
	v.UndoPath = withQuery("/undo", selection(r))
	if last, ok := s.desk.Last(); ok {
		v.Undo = &last
	}
	seq, err := strconv.Atoi(r.URL.Query().Get("done"))
	if err != nil {
		return v
	}
	if done, ok := s.desk.Act(seq); ok {
		v.Done = done.What
		if err := s.store.HistoryError(); err != nil {
			v.Problem = "Written, and not in the folder's history yet: " + err.Error()
		}
	}
	return v
}

// redirectDone redirects to a page that shows the decision. The address holds only its
// number, so that a link cannot put other text on the page.
func redirectDone(w http.ResponseWriter, r *http.Request, to string, done review.Done) error {
	q := selection(r)
	q.Set("done", strconv.Itoa(done.Seq))
	http.Redirect(w, r, withQuery(to, q), http.StatusSeeOther)
	return nil
}
