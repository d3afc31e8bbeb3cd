package runtime

import (
	"slices"

	"anamnesis/opstream/op"
	"anamnesis/orchestrator/journal"
)

// The todo list is the agent's own plan. State.Todos is the list in force; each
// ended step keeps the list it ended with, so that a jump can bring it back.

// currentTodos returns the list in force, with what calls of the present reply
// have set. It may be called from any goroutine.
func (t *ledger) currentTodos() []op.Todo {
	var todos []op.Todo
	t.journal.Look(func(p journal.Public, queue []op.Op) {
		todos = p.Todos
		for _, o := range queue {
			if b, ok := o.Body.(*op.TodosSet); ok {
				todos = b.Todos
			}
		}
	})
	return slices.Clone(todos)
}
