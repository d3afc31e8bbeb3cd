package page

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"anamnesis/anamnesis/facts"
)

// factsView is the facts of a repository as a card.
type factsView struct {
	Path, Topic     string
	Task            string
	Issue, Solution []*facts.Fact
	Constraint      []string
}

// repositoryOf opens the facts of a task's repository, and the card's topic.
func (s *Server) repositoryOf(r *http.Request) (repo *facts.Repo, topic string, err error) {
	st, err := s.tasks.State(r.PathValue("task"))
	if err != nil {
		return nil, "", err
	}
	topic = cmp.Or(st.Opened.Repo, st.Opened.Dir)
	repo, err = s.tasks.Facts(st.Opened.Dir)
	if errors.Is(err, facts.ErrDamaged) || errors.Is(err, facts.ErrNewer) {
		err = refuse(http.StatusConflict, "%v", err)
	}
	return repo, topic, err
}

func (s *Server) showFacts(w http.ResponseWriter, r *http.Request) error {
	repo, topic, err := s.repositoryOf(r)
	if err != nil {
		return err
	}
	id := r.PathValue("task")
	v := factsView{Path: taskPath(id) + "/facts", Task: id, Topic: topic}
	list := repo.Facts()
	for i := range list {
		f := &list[i]
		if f.Kind == facts.Works {
			v.Solution = append(v.Solution, f)
		} else {
			v.Issue = append(v.Issue, f)
		}
		v.Constraint = append(v.Constraint, f.Source())
	}
	return s.render(w, r, http.StatusOK, "facts", view{Title: "Facts", Section: "/tasks", Body: v})
}

// correctFact sets a user's words for a fact; without words it is not told any more.
func (s *Server) correctFact(w http.ResponseWriter, r *http.Request) error {
	repo, _, err := s.repositoryOf(r)
	if err != nil {
		return err
	}
	id, line := r.PostForm.Get("fact"), strings.Join(strings.Fields(r.PostForm.Get("line")), " ")
	if len(line) > facts.MaxLine {
		return refuse(http.StatusBadRequest, "The line has %d bytes; a fact may have %d.", len(line), facts.MaxLine)
	}
	f := facts.Find(repo.Facts(), id)
	if f == nil {
		return refuse(http.StatusNotFound, "There is no fact %q here.", id)
	}
	if line != f.String() { // otherwise it is as counted
		if err := repo.Correct(f.ID(), line); err != nil {
			return err
		}
	}
	http.Redirect(w, r, taskPath(r.PathValue("task"))+"/facts", http.StatusSeeOther)
	return nil
}
