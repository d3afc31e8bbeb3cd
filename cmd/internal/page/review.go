package page

import "net/http"

func (s *Server) reviewRoutes() {
	s.handle("GET /review", s.showQueue)
}

// showQueue lists the cards that wait for a person.
func (s *Server) showQueue(w http.ResponseWriter, r *http.Request) error {
	return s.render(w, http.StatusOK, "review", view{Title: "Review", Section: "/review"})
}
