package op

import (
	"fmt"
	"slices"
	"strings"
)

// Todo is one item of the agent's todo list.
type Todo struct {
	Title  string `json:"title"`
	Status string `json:"status"` // pending | in_progress | done
}

// The states of a Todo.
const (
	TodoPending    = "pending"
	TodoInProgress = "in_progress"
	TodoDone       = "done"
)

// TodosSet replaces the agent's todo list; no items clear it. A jump restores the list of its
// target without another operation.
type TodosSet struct {
	Call  string `json:"call"` // call id
	Todos []Todo `json:"todos,omitempty"`
}

func (t Todo) String() string {
	return fmt.Sprintf("[%s] %s", t.Status, strings.Join(strings.Fields(t.Title), " "))
}

// TodosSummary returns a list's progress in a few words.
func TodosSummary(list []Todo) string {
	if len(list) == 0 {
		return "no items"
	}
	done := 0
	for _, t := range list {
		if t.Status == TodoDone {
			done++
		}
	}
	text := fmt.Sprintf("%d of %d done", done, len(list))
	if i := slices.IndexFunc(list, func(t Todo) bool { return t.Status == TodoInProgress }); i >= 0 {
		text += "; now: " + strings.Join(strings.Fields(list[i].Title), " ")
	}
	return text
}
