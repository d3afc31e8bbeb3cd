package page

import (
	"net/http"
	"strconv"

	"anamnesis/cmd/internal/page/door"
)

// sessionsView is what the page of the browsers with access shows.
type sessionsView struct {
	Sessions []door.Session // the last used first
	Own      int            // the id of the one that reads the page
	Links    []link
}

// link is the addresses that give a right.
type link struct {
	May  string
	URLs []string
}

func (s *Server) showSessions(w http.ResponseWriter, r *http.Request) error {
	v := sessionsView{Sessions: s.door.Sessions(), Own: door.SessionOf(r).ID, Links: []link{
		{"read", s.door.URLs(door.Read)},
		{"read, decide about cards, and answer tasks", s.door.URLs(door.Answer)},
		{"do all of this, jump, and end sessions", s.door.URLs(door.Jump)},
	}}
	return s.render(w, r, http.StatusOK, "sessions", view{Title: "Access", Section: "/sessions", Body: v})
}

// revoke ends one session, or all but the one that asks for it.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	own, which := door.SessionOf(r).ID, r.PostForm.Get("session")
	id, err := strconv.Atoi(which)
	if err != nil && which != "others" {
		return refuse(http.StatusBadRequest, "%q is no session. Open the list of sessions.", which)
	}
	s.door.Revoke(func(o door.Session) bool { return o.ID == id || which == "others" && o.ID != own })
	if s.renewed != nil {
		s.renewed(s.URLs())
	}
	http.Redirect(w, r, "/sessions", http.StatusSeeOther)
	return nil
}
