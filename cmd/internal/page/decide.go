package page

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"anamnesis/cmd/internal/page/markup"
	"anamnesis/cmd/internal/term"
	knowledgebase "anamnesis/knowledge_base"
	"anamnesis/knowledge_base/card"
	"anamnesis/knowledge_base/review"
)

// maxFormBytes bounds what a form sends: a card's text, each byte of which may
// take three, and some short fields.
const maxFormBytes = 3*card.MaxBytes + 64<<10

// readForm reads a form, if a request has one, of bounded size.
func readForm(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodPost {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxFormBytes)
	if err := r.ParseForm(); err != nil {
		if errors.As(err, new(*http.MaxBytesError)) {
			return fmt.Errorf("read the form: %w", err)
		}
		return refuse(http.StatusBadRequest, "The form cannot be read: %v.", err)
	}
	return nil
}

// decide performs a decision about one card.
func (s *Server) decide(w http.ResponseWriter, r *http.Request) error {
	id, f := r.PathValue("card"), r.PostForm
	from := originOf(f.Get("from"))
	q := s.waiting(r)
	next := after(id, from, q.place(id)) // found now, since the decision removes the card from the queue
	d := review.Decision{Act: review.Act(f.Get("act")), IDs: []string{id},
		Reason: f.Get("reason"), Seen: map[string]string{id: f.Get("seen")}, Untaint: f.Get("untaint") != ""}
	switch d.Act {
	case review.Approve, review.Reject, review.Retire, review.Restore:
	case review.Supersede:
		d.By = strings.TrimSpace(f.Get("by"))
		if d.By == id {
			return refuse(http.StatusBadRequest, "A card cannot take its own place.")
		}
		for i, seen := range f["by_seen"][:min(len(f["by_seen"]), len(f["by"]))] {
			d.Seen[f["by"][i]] = seen
		}
		if f.Get("turned") != "" { // the card shown replaces the other, or the others
			d.IDs, d.By = f["by"], id
			next = from.path(id)
		}
	default:
		return refuse(http.StatusBadRequest, "%q is not something to decide about a card.", d.Act)
	}
	if len(d.IDs) == 0 || slices.ContainsFunc(d.IDs, func(id string) bool { return d.Seen[id] == "" }) {
		return refuse(http.StatusBadRequest, "The form does not say which text was read. Open the card's page.")
	}
	done, err := s.desk.Decide(r.Context(), d)
	var conflict *knowledgebase.ConflictError
	var state *review.StateError
	switch {
	case errors.As(err, &conflict):
		return s.showCard(w, r, http.StatusConflict, from,
			fmt.Sprintf("Nothing was decided: card %s has changed since. This is its current text.", conflict.ID))
	case errors.As(err, &state):
		return s.showCard(w, r, http.StatusConflict, from, "Nothing was decided. "+state.Error())
	case errors.Is(err, knowledgebase.ErrNotFound) && d.Act == review.Supersede:
		return s.showCard(w, r, http.StatusUnprocessableEntity, from,
			fmt.Sprintf("Nothing was decided: there is no card %q.", d.By))
	case err != nil:
		return err
	}
	return redirectDone(w, r, next, done)
}

// after returns the page that follows a decision; in the review, the next card.
func after(id string, from origin, place queuePlace) string {
	switch {
	case from == fromCard || place.At == 0:
		return cardPath(id)
	case place.Next != "":
		return reviewPath(place.Next)
	}
	return "/review"
}

// editView is the page on which a card's text is edited.
type editView struct {
	ID, Topic string
	From      origin
	Back      string // the page to return to
	Seen      string
	Whole     bool   // the file's text is edited, not topic and body
	Text      string // the file's text
	Body      string
	Preview   template.HTML // the body as it will look
	Now       string        // the card's present text, if it has changed since
}

func (s *Server) showEdit(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("card")
	from := originOf(r.URL.Query().Get("from"))
	text, seen, err := s.store.Text(id)
	if err != nil {
		return err
	}
	v := editView{ID: id, From: from, Seen: seen, Text: string(text), Whole: r.URL.Query().Get("as") == "file"}
	return s.renderEdit(w, r, http.StatusOK, v, "")
}

func (s *Server) preview(w http.ResponseWriter, r *http.Request) error {
	out, _ := markup.Render([]byte(r.PostForm.Get("body")))
	return s.renderPart(w, "preview", out)
}

// merged returns a card's text with another topic and body.
func merged(text []byte, topic, body string) (string, error) {
	c, err := card.Parse(text)
	if err != nil {
		return "", err
	}
	c.Topic = topic
	now := string(c.Markdown())
	front := strings.TrimSuffix(now, string(c.Body()))
	return front + "\n" + strings.TrimLeft(body, "\n"), nil
}

func (s *Server) renderEdit(w http.ResponseWriter, r *http.Request, code int, v editView, problem string) error {
	v.Topic = v.ID
	if c, err := card.Parse([]byte(v.Text)); err == nil {
		v.Topic, v.Body = c.Topic, strings.TrimLeft(string(c.Body()), "\n")
		v.Preview, _ = markup.Render(c.Body())
	} else {
		v.Whole = true // topic and body cannot be separated
	}
	v.Back = v.From.path(v.ID)
	return s.render(w, r, code, "edit", view{Title: "Edit: " + v.Topic, Section: v.From.section(),
		Body: v, Problem: problem})
}

// edit replaces a card's text. A text that cannot be stored stays in the form, with the
// fault. If the card has changed since, both texts are shown.
func (s *Server) edit(w http.ResponseWriter, r *http.Request) error {
	v := editView{ID: r.PathValue("card"), From: originOf(r.PostForm.Get("from")), Seen: r.PostForm.Get("seen"),
		Text: r.PostForm.Get("text")}
	was, seen, err := s.store.Text(v.ID)
	if err != nil {
		return err
	}
	breaks := strings.NewReplacer()
	if !bytes.Contains(was, []byte("\r\n")) {
		// Browsers send each line break of a text field as CR LF.
		breaks = strings.NewReplacer("\r\n", "\n")
	}
	if v.Whole = r.PostForm.Has("text"); v.Whole {
		v.Text = breaks.Replace(v.Text)
	} else if v.Text, err = merged(was, r.PostForm.Get("topic"), breaks.Replace(r.PostForm.Get("body"))); err != nil {
		return err
	}
	if lostIssue(was, []byte(v.Text)) {
		return s.renderEdit(w, r, http.StatusUnprocessableEntity, v,
			"Not saved: the Issue is missing, by which tasks find the card. Begin a line with \"- **Issue**: \" and "+
				"what goes wrong.")
	}
	done, err := s.desk.Edit(r.Context(), v.ID, v.Seen, []byte(v.Text))
	var conflict *knowledgebase.ConflictError
	var fault *card.Error
	switch {
	case errors.As(err, &conflict):
		v.Seen, v.Now, v.Whole = seen, term.Clean(string(was)), true
		return s.renderEdit(w, r, http.StatusConflict, v,
			"Not saved: the card has changed since. Below are what it says now, and your text. "+
				"Put into your text what should stay, and save again.")
	case errors.As(err, &fault):
		v.Whole = true // the fault's line number counts in the file
		text := "Not saved: " + fault.What
		if fault.Line > 0 {
			text = fmt.Sprintf("Not saved: line %d: %s", fault.Line, fault.What)
		}
		return s.renderEdit(w, r, http.StatusUnprocessableEntity, v, text)
	case err != nil:
		return err
	}
	return redirectDone(w, r, v.From.path(v.ID), done)
}

// lostIssue reports whether a card had an issue and an edit removed it.
func lostIssue(was, now []byte) bool {
	old, err := card.Parse(was)
	c, fault := card.Parse(now) // the store reports a fault
	return err == nil && fault == nil && len(old.Issue) > 0 && len(c.Issue) == 0
}
