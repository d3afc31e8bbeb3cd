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

// TodosSet replaces the agent's todo list; no items clear it. A jump brings
// back the list as it was at its target, without an operation of its own.
type TodosSet struct {
	Call  string `json:"call"` // call id
	Todos []Todo `json:"todos,omitempty"`
}

// Kind implements Body.
func (*TodosSet) Kind() Kind { return KindTodosSet }

func (t Todo) String() string {
	return fmt.Sprintf("[%s] %s", t.Status, strings.Join(strings.Fields(t.Title), " "))
}

// TodosSummary says in a few words how far a list has come.
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
