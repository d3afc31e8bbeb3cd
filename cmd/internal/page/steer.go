package page

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"anamnesis/cmd/internal/show"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/session"
)

// planWidth is the width of what a jump would do, in columns.
const planWidth = 100

// did says what a form has done, by the name that the redirect carries.
func did(name string) string {
	return map[string]string{
		"say":       "Sent. The agent reads it with its next request.",
		"stop":      "The turn ends; a running command has time to end by itself.",
		"scheduled": "The task jumps when its present step is complete.", "jump": "The task has jumped.",
	}[name]
}

// say sends what a form of a task's page holds to its agent.
func (s *Server) say(w http.ResponseWriter, r *http.Request) error {
	return redirectDid(w, r, "say",
		s.tasks.Say(r.Context(), r.PathValue("task"), strings.TrimSpace(r.PostForm.Get("text"))))
}

func (s *Server) stop(w http.ResponseWriter, r *http.Request) error {
	return redirectDid(w, r, "stop", s.tasks.Stop(r.Context(), r.PathValue("task"), "the page"))
}

// jump performs a jump that planJump has shown.
func (s *Server) jump(w http.ResponseWriter, r *http.Request) error {
	j, err := s.jumpOf(r)
	if err != nil {
		return err
	}
	// A browser that leaves does not cut off a jump.
	res, err := s.tasks.Jump(context.WithoutCancel(r.Context()), r.PathValue("task"), "", j, session.Client{})
	if len(res.Warnings) > 0 && err == nil {
		return s.render(w, r, http.StatusOK, "problem",
			view{Title: did("jump"), Body: strings.Join(res.Warnings, "\n")})
	}
	if res.Scheduled {
		return redirectDid(w, r, "scheduled", err)
	}
	return redirectDid(w, r, "jump", err)
}

// redirectDid redirects to the task's page, which says what was done.
func redirectDid(w http.ResponseWriter, r *http.Request, name string, err error) error {
	if err == nil {
		http.Redirect(w, r, taskPath(r.PathValue("task"))+"?did="+name, http.StatusSeeOther)
	}
	return err
}

// jumpOf reads the jump that a form or an address asks for.
func (s *Server) jumpOf(r *http.Request) (j op.JumpRequested, err error) {
	st, err := s.tasks.State(r.PathValue("task"))
	if err != nil {
		return j, err
	}
	if o := st.Opened.Origin; o != nil {
		return j, refuse(http.StatusConflict, "This is a session of %s, which 'anamnesis jump' takes back.", o.Agent)
	}
	j.Reason = strings.TrimSpace(r.FormValue("text"))
	if j.To, err = strconv.Atoi(r.FormValue("to")); err != nil {
		err = refuse(http.StatusBadRequest, "%q is not a step. Go back to the task.", r.FormValue("to"))
	}
	return j, err
}

// planView is the page on which a jump is confirmed.
type planView struct {
	Task, Path, Plan string
	To               int
}

func (s *Server) planJump(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("task")
	j, err := s.jumpOf(r)
	if err != nil {
		return err
	}
	plan, err := s.tasks.PlanJump(r.Context(), id, "", j)
	if err != nil {
		return err
	}
	var text strings.Builder
	(&show.Printer{Out: &text, Err: &text, Width: planWidth}).JumpPlan(id, plan)
	v := planView{id, taskPath(id), text.String(), j.To}
	return s.render(w, r, http.StatusOK, "jump",
		view{Title: "Jump to step " + strconv.Itoa(j.To) + " · " + id, Section: "/tasks", Body: v})
}
