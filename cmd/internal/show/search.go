package show

import (
	"fmt"
	"strings"
	"time"

	"anamnesis/anamnesis/quote"
	view "anamnesis/cmd/internal/term"
	"anamnesis/orchestrator/search"
)

// Search returns what a search found as text: of each task its best place, and the commands that open it and go back
// to it. At a terminal with a task, its own places are named by slash commands.
func Search(f *search.Found, width int, task string) string {
	var out strings.Builder
	for _, h := range f.Hits {
		about := []string{fmt.Sprintf("step %d", h.Step), h.Kind, h.Time.Local().Format(time.DateOnly)}
		if h.More > 0 {
			about = append(about, fmt.Sprintf("%d more here", h.More))
		}
		if h.Also > 0 {
			about = append(about, "the same in "+quote.Number(h.Also, "other task"))
		}
		if h.Agent != "" {
			about = append(about, h.Agent)
		}
		about = append(about, view.ShortDir(h.Dir))
		fmt.Fprintf(&out, "%s\n  %s\n", view.Line(h.Task+"  "+strings.Join(about, " · "), width),
			view.Line(h.Text, 2*width-4))
		commands := fmt.Sprintf("anamnesis show %s %d", h.Task, h.Op)
		if h.Task == task {
			commands = fmt.Sprintf("/jump %d", h.Step)
		} else if h.CanJump {
			commands += fmt.Sprintf(" · anamnesis jump %s %d", h.Task, h.Step)
		}
		fmt.Fprintf(&out, "  %s\n", commands)
	}
	if len(f.Hits) == 0 {
		out.WriteString("nothing found; sessions of other agents are looked at once 'anamnesis import' has read them\n")
	}
	return out.String()
}
