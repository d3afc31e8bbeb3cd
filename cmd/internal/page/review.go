package page

import (
	"errors"
	"net/http"
	"slices"
	"strconv"

	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/review"
)

// maxWaitingListed is how many waiting cards the list of them shows.
const maxWaitingListed = 200

// key is a single key and what it does on a page, for the part "keys".
type key struct{ Key, What string }

// queueView is what the list of waiting cards shows.
type queueView struct {
	Cards  []listedCard
	More   int // beyond those listed
	Total  int
	First  string       // the card to begin with
	Undo   *review.Done // what could be taken back; nil for nothing
	Broken []knowledgebase.BrokenCard
	Keys   []key
}

// showQueue lists the cards that wait for a user.
func (s *Server) showQueue(w http.ResponseWriter, r *http.Request) error {
	waiting := review.Waiting(s.store)
	v := queueView{Cards: s.rows(waiting[:min(len(waiting), maxWaitingListed)]),
		Total: len(waiting), Broken: s.store.Broken(),
		Undo: s.undoable(), Keys: []key{{"j", "begin"}, {"u", "undo"}, {"/", "search"}}}
	v.More = v.Total - len(v.Cards)
	if v.Total > 0 {
		v.First = waiting[0].ID
	}
	return s.render(w, http.StatusOK, "queue", s.framed(r, view{Title: "Review", Section: "/review", Body: v}))
}

// undoable says what Undo would take back.
func (s *Server) undoable() *review.Done {
	last, ok := s.desk.Last()
	if !ok {
		return nil
	}
	return &last
}

// queuePlace is the position of a card in the queue.
type queuePlace struct {
	At, Of     int    // from 1; At is 0 for a card that does not wait
	Prev, Next string // "" at the ends
}

func placeOf(id string, waiting []knowledgebase.Entry) queuePlace {
	p := queuePlace{Of: len(waiting)}
	i := slices.IndexFunc(waiting, func(e knowledgebase.Entry) bool { return e.ID == id })
	if i < 0 {
		return p
	}
	p.At = i + 1
	if i > 0 {
		p.Prev = waiting[i-1].ID
	}
	if i+1 < len(waiting) {
		p.Next = waiting[i+1].ID
	}
	return p
}

// queueAround is how many waiting cards are listed beside one.
const queueAround = 12

// around returns the rows of the cards that wait next to the one at that place.
func (s *Server) around(p queuePlace, waiting []knowledgebase.Entry) []listedCard {
	first := max(0, min(p.At-1-queueAround/3, len(waiting)-queueAround))
	rows := s.rows(waiting[first:min(len(waiting), first+queueAround)])
	for i := range rows {
		rows[i].Current = p.At > 0 && rows[i].ID == waiting[p.At-1].ID
	}
	return rows
}

// undo takes the last decision back and shows the card it was about. The form
// says which one the page had shown: another browser may have decided since.
func (s *Server) undo(w http.ResponseWriter, r *http.Request) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	seq, err := strconv.Atoi(r.PostForm.Get("act"))
	if err != nil {
		seq = 0 // no act has that number
	}
	done, err := s.desk.Undo(r.Context(), seq)
	var later *review.LaterError
	if errors.As(err, &later) {
		return refuse(http.StatusConflict, "Nothing was taken back. Since that page was made, this was decided here: %s. Open the review again to see what can be taken back.", later.Last.What)
	}
	var conflict *knowledgebase.ConflictError
	if errors.As(err, &conflict) {
		return refuse(http.StatusConflict, "Nothing was taken back: card %s was changed since. It stays as it is now; its history shows what it was.", conflict.ID)
	}
	if err != nil {
		return err
	}
	to := cardPath(done.ID)
	if placeOf(done.ID, review.Waiting(s.store)).At > 0 {
		to = reviewPath(done.ID)
	}
	return redirectDone(w, r, to, done)
}
