package page

import (
	"fmt"
	"net/http"
	"strings"

	"anamnesis/cmd/internal/show"
	"anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/blame"
)

type blamed struct {
	Head string
	Rows [][2]string
	Ops  []blame.Op
	Task string // its page; empty if it is no task's
	Step int
}

// showBlame says what wrote a line of a step's diff. A deleted line is one of the step that it continues.
func (s *Server) showBlame(w http.ResponseWriter, r *http.Request) error {
	step, err := pathNumber(r, "step")
	if err != nil {
		return err
	}
	line, err := numberIn(r, "line", 1)
	if err != nil {
		return err
	}
	task, path, from := r.PathValue("task"), r.FormValue("path"), int(min(step, 1<<30))
	st, err := s.tasks.State(task)
	if err != nil {
		return err
	}
	if r.FormValue("kind") == "del" && from < st.Steps.Len() {
		from = st.Steps.At(from).Parent
	}
	a, err := s.tasks.BlameStep(r.Context(), task, from, path, int(min(line, 1<<30)))
	if err != nil {
		return refuse(http.StatusNotFound, "What wrote the line cannot be said: %v", err)
	}
	d := detail{Task: task, Path: taskPath(task), Back: taskPath(task)}
	d.Title = term.Clean(fmt.Sprintf("Line %d of %s", line, path))
	for _, o := range a.Origins {
		b := blamed{Step: o.Step, Ops: o.Calls}
		if o.Task != "" {
			b.Task = taskPath(o.Task)
		}
		var rows [][2]string
		b.Head, rows = show.BlameOrigin(o)
		for _, row := range rows {
			if !strings.HasPrefix(row[1], "anamnesis ") { // in place of commands there are links
				b.Rows = append(b.Rows, row)
			}
		}
		d.Blame = append(d.Blame, b)
	}
	return s.showDetail(w, r, d)
}
