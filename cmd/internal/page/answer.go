package page

import (
	"net/http"
	"strconv"
	"strings"

	"anamnesis/cmd/internal/term"
	"anamnesis/opstream/op"
	"anamnesis/orchestrator/feature/question"
	"anamnesis/orchestrator/state"
)

// asks is the open question of a task, with its form.
type asks struct {
	Path    string // of the task
	Op      uint64
	Text    string
	Choices string
	Buttons []string // the first is that of the Enter key
}

// send is the button that sends what was typed.
const send = "send"

// asksOf returns a task's question; nil: there is none.
func asksOf(task string, q *state.Question) *asks {
	if q == nil {
		return nil
	}
	a := &asks{Path: taskPath(task), Op: q.Seq, Text: term.QuestionBody(&q.QuestionAsked),
		Choices: question.Choices(&q.QuestionAsked)}
	switch q.About {
	case op.AboutCall:
		a.Choices, a.Buttons = "Why, with a no", []string{"no", "yes", "always"}
	case op.AboutLimit, op.AboutProvider:
		a.Buttons = []string{send, "yes", "no"}
	default:
		a.Buttons = []string{send}
	}
	return a
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request) error {
	seq, err := strconv.ParseUint(r.PostForm.Get("op"), 10, 63)
	if err != nil || seq == 0 {
		return refuse(http.StatusBadRequest, "The form does not say which question was answered. Open the task's page.")
	}
	text := strings.TrimPrefix(r.PostForm.Get("answer"), send) + " " + r.PostForm.Get("words")
	task := r.PathValue("task")
	if _, err = s.tasks.Answer(r.Context(), task, seq, text, question.FromPage); err != nil {
		return err
	}
	http.Redirect(w, r, taskPath(task), http.StatusSeeOther)
	return nil
}
